/** Writes to the streams of a command: safe to print, coloured, and no faster than the reader. */
import { escaped, hidden } from '../../part/visible.ts'
import type { CommandContext, Output } from '../context.ts'
import { styleText } from 'node:util'

/**
 * Makes text from a log, a model or a file safe to print on a terminal. Control characters and characters that change the
 * text direction are escaped as in JSON, so JSON stays valid. Line feeds and tabs are kept; carriage returns, which would
 * overwrite the line, are dropped.
 */
export function printable(text: string): string {
  return text.replaceAll(hidden, (char) => {
    if (char === '\n' || char === '\t') return char
    return char === '\r' ? '' : escaped(char)
  })
}

/** Escapes the text only if the stream is a terminal: programs get it byte for byte. */
export function forStream(text: string, { isTTY }: { isTTY?: boolean }): string {
  return isTTY ? printable(text) : text
}

type Format = Parameters<typeof styleText>[0]

/** Colours, only on a terminal and without `NO_COLOR`. */
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

/** Writes to stdout and waits while the reader is too slow. Also resolves if stdout is closed. */
export async function writeOut(context: CommandContext, text: string): Promise<void> {
  const { stdout } = context
  if (stdout.write(text)) return
  const done = Promise.withResolvers<void>()
  const over = () => done.resolve()
  for (const event of ['drain', 'close', 'error']) stdout.once(event, over)
  await done.promise
  for (const event of ['drain', 'close', 'error']) stdout.off(event, over)
}
