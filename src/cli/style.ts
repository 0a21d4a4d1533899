/** Colours, only on a terminal and without `NO_COLOR`. */
import type { CommandContext, Output } from './context.ts'
import { styleText } from 'node:util'

type Format = Parameters<typeof styleText>[0]

export function paint(context: CommandContext, format: Format, text: string, stream: Output = context.stdout): string {
  // Node's own check would colour pipes with FORCE_COLOR.
  return stream.isTTY && !context.env['NO_COLOR'] ? styleText(format, text, { validateStream: false }) : text
}

/** Shown for a run that the log has as running although its process is gone. */
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

/** Colours text that is a run's status, possibly padded; other text is returned as is. */
export function paintStatus(context: CommandContext, text: string, stream?: Output): string {
  const format = statusFormats.get(text.trim())
  return format === undefined ? text : paint(context, format, text, stream)
}
