/** The input of `parse` and `import`: a file or stdin, and whose output it is. */
import { createReadStream, statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { CommandContext } from '../context.ts'
import { MillraceError, messageOf } from '../../part/error.ts'
import { cliNames, type CliName } from '../../ingest/cli-names.ts'
import { detectFormat, otherCli, unread } from '../../ingest/detect.ts'
import { toEvent } from '../../ingest/event.ts'
import { createLineReader } from '../../ingest/line-reader.ts'

export interface TranscriptSource {
  /** `stdin`, or the file's path. */
  name: string
  stream: Readable
}

/** `file`: `-` or nothing for stdin. Throws `usage`. */
export function openSource(context: CommandContext, file: string | undefined, usage: string): TranscriptSource {
  if (file === undefined || file === '-') {
    if (context.stdin.isTTY) throw new MillraceError('usage', `No input. ${usage}`)
    return { name: 'stdin', stream: context.stdin }
  }
  const found = statSync(context.path(file), { throwIfNoEntry: false })
  if (found === undefined) throw new MillraceError('usage', `There is no file ${file}.`)
  if (found.isDirectory()) throw new MillraceError('usage', `${file} is a folder. Pass a file.`)
  return { name: file, stream: createReadStream(context.path(file)) }
}

type Format = CliName | 'ndjson'

/** Banners may come before the first event, up to this many bytes. */
const maxGuessed = 1024 * 1024

/**
 * Reads a source and detects its format from its lines. Chunks are passed on as they arrive: the first of them with the
 * format, or `unknown-format` is thrown.
 */
export async function* readSource(
  { name, stream }: TranscriptSource,
  from: Format | undefined,
): AsyncGenerator<{ format: Format; chunk: Uint8Array }> {
  let format = from
  let other: string | undefined
  let pending: Uint8Array[] = []
  let length = 0
  const guess = createLineReader({
    maxLength: maxGuessed,
    onLine(line) {
      if (format === undefined && other === undefined) other = otherCli(toEvent(line) ?? {})
      if (other === undefined) format ??= detectFormat(line)
    },
    onTooLong: () => undefined,
  })
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      length += chunk.length
      if (format === undefined) {
        guess.feed(chunk)
        pending.push(chunk)
        if (other !== undefined) throw otherFormat(name, other)
        if (length > maxGuessed && format === undefined) throw unknownFormat(name)
      }
      if (format === undefined) continue
      if (pending.length === 0) yield { format, chunk }
      for (const each of pending) yield { format, chunk: each }
      pending = []
    }
  } catch (error) {
    if (error instanceof MillraceError) throw error
    throw new MillraceError('unreadable', `${name} cannot be read: ${messageOf(error)}`, { cause: error })
  }
  // The last line may have no end.
  guess.end()
  if (other !== undefined) throw otherFormat(name, other)
  if (length === 0 && from === undefined) throw new MillraceError('unknown-format', `${name} is empty.`)
  if (format === undefined) throw unknownFormat(name)
  for (const chunk of pending) yield { format, chunk }
}

function unknownFormat(name: string): MillraceError {
  const names = `${cliNames.slice(0, -1).join(', ')} or ${cliNames.at(-1)}`
  const cure = `Name the CLI that wrote it with --from ${names}.`
  return new MillraceError('unknown-format', `No line of ${name} tells which CLI agent wrote it. ${cure}`)
}

function otherFormat(name: string, other: string): MillraceError {
  return new MillraceError('unknown-format', `${name} is the output of ${other}${unread}`)
}
