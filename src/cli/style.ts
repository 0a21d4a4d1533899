/** Colours for a terminal, and for nothing else: `NO_COLOR` and streams that are none get plain text. */
import { styleText } from 'node:util'

type Format = Parameters<typeof styleText>[0]

export function paint(format: Format, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  // What Node looks at besides (FORCE_COLOR) would colour pipes.
  return stream.isTTY && !process.env['NO_COLOR'] ? styleText(format, text, { validateStream: false }) : text
}

/** The status of a run that the log holds as running though its process is gone. */
export const orphaned = 'running (no server)'

const statusFormats = new Map<string, Format>(
  Object.entries<Format>({
    running: 'cyan',
    [orphaned]: 'yellow',
    suspended: 'yellow',
    completed: 'green',
    failed: 'red',
    'timed-out': 'red',
    'budget-exceeded': 'red',
    aborted: 'magenta',
    interrupted: 'magenta',
  }),
)

/** A word that may be a run's status, perhaps with blanks behind it. */
export function paintStatus(text: string, stream?: NodeJS.WriteStream): string {
  const format = statusFormats.get(text.trim())
  return format === undefined ? text : paint(format, text, stream)
}
