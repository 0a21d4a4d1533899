/** The input of a run: `--input`, the message from `-m` or stdin, and attached files. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { CommandContext } from '../context.ts'
import { messageOf, MillraceError } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import { isUtf8 } from 'node:buffer'
import { basename, extname } from 'node:path'
import type { FileContent, TextContent } from '../../part/message.ts'

export interface InputFlags {
  message?: string
  input?: string
  file?: string[]
}

/** Whether an input file has one input per line. */
export function isBatch(path: string | undefined): path is string {
  return path !== undefined && /\.(?:jsonl|ndjson)$/iu.test(path)
}

export async function readInput(
  context: CommandContext,
  { message, input, file = [] }: InputFlags,
): Promise<Record<string, unknown>> {
  const given = input === undefined ? undefined : readObject(context, input)
  if (given !== undefined && message === undefined && file.length === 0) return given
  if (message === undefined && context.stdin.isTTY) {
    throw new MillraceError('usage', 'No message. Pass one with -m "text", --input file.json or on stdin.')
  }
  const content = message ?? (await text(context.stdin)).trim()
  if (content === '' && file.length === 0)
    throw new MillraceError('usage', 'The message is empty. Pass one with -m "text" or on stdin.')
  return { ...given, messages: [{ role: 'user', content: withFiles(context, content, file) }] }
}

/** The object of `--input`. Throws `usage`. */
export function readObject(context: CommandContext, path: string): Record<string, unknown> {
  let value: unknown
  let content = ''
  try {
    content = readFileSync(context.path(path), 'utf8')
    value = parseJson(content)
  } catch (error) {
    if (!existsSync(context.path(path))) throw new MillraceError('usage', `--input: there is no file ${path}.`)
    if (statSync(context.path(path)).isDirectory())
      throw new MillraceError('usage', `--input ${path} is a folder, not a file.`)
    throw new MillraceError('usage', `--input ${path}: ${messageOf(error)}${perLine(content)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new MillraceError('usage', `--input ${path} must hold a JSON object.`)
  }
  return value as Record<string, unknown>
}

/** The cure for a batch whose file has another name. */
function perLine(text: string): string {
  const [first = '', ...rest] = text.trim().split('\n')
  if (rest.length === 0 || !/^\{.*\}$/u.test(first.trim())) return ''
  return '. If it has one input per line, name it .jsonl'
}

/** Maximum bytes of all files together. Base64 adds a third. */
const maxBytes = 20 * 1024 * 1024

/**
 * Attached files as message parts: text files as text, everything else as data with a media type. Without files, returns the text.
 * Throws `usage` for a file that is missing, too large or of an unknown type.
 */
export function withFiles(
  context: CommandContext,
  text: string,
  paths: readonly string[],
): string | (TextContent | FileContent)[] {
  if (paths.length === 0) return text
  let left = maxBytes
  const parts = paths.map((path) => {
    const bytes = readFile(context, path, left)
    left -= bytes.length
    return toPart(path, bytes)
  })
  return text === '' ? parts : [{ type: 'text', text }, ...parts]
}

function readFile(context: CommandContext, path: string, room: number): Buffer {
  const found = statSync(context.path(path), { throwIfNoEntry: false })
  if (found === undefined) throw new MillraceError('usage', `--file: there is no file ${path}.`)
  if (!found.isFile()) throw new MillraceError('usage', `--file ${path} is not a regular file.`)
  if (found.size > room) {
    throw new MillraceError(
      'usage',
      `--file ${path} is too large: the limit for all files together is ${maxBytes / 2 ** 20} MiB.`,
    )
  }
  const bytes = readFileSync(context.path(path))
  if (bytes.length === 0) throw new MillraceError('usage', `--file ${path} is empty.`)
  return bytes
}

function toPart(path: string, bytes: Buffer): TextContent | FileContent {
  const filename = basename(path)
  const mediaType = mediaTypeOf(path, bytes)
  if (mediaType !== 'text') return { type: 'file', mediaType, data: bytes.toString('base64'), filename }
  // Few providers accept text files; every model accepts text.
  return { type: 'text', text: `File ${filename}:\n${bytes.toString('utf8')}` }
}

/** File signatures as Latin-1; a dot matches any byte. */
const beginnings: readonly (readonly [RegExp, string])[] = [
  [/^\x89PNG\r\n/u, 'image/png'],
  [/^\xff\xd8\xff/u, 'image/jpeg'],
  [/^GIF8[79]a/u, 'image/gif'],
  [/^RIFF....WEBP/su, 'image/webp'],
  [/^RIFF....WAVE/su, 'audio/wav'],
  [/^....ftypavi[fs]/su, 'image/avif'],
  [/^....ftyp(?:heic|heix|mif1)/su, 'image/heic'],
  [/^....ftypM4A/su, 'audio/mp4'],
  [/^....ftyp/su, 'video/mp4'],
  [/^BM.{4}\0\0\0\0/su, 'image/bmp'],
  [/^(?:II\*\0|MM\0\*)/u, 'image/tiff'],
  [/^%PDF-/u, 'application/pdf'],
  [/^(?:ID3|\xff[\xf2\xf3\xfb])/u, 'audio/mpeg'],
  [/^OggS/u, 'audio/ogg'],
  [/^fLaC/u, 'audio/flac'],
  [/^.E\xdf\xa3/su, 'video/webm'],
]

/** For containers that several formats share, where the signature is not enough. */
const extensions: ReadonlyMap<string, string> = new Map([
  ['.docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['.xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['.pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
  ['.zip', 'application/zip'],
])

/** The content takes precedence over the file name. `text` for UTF-8. */
function mediaTypeOf(path: string, bytes: Buffer): string {
  const first = bytes.subarray(0, 16).toString('latin1')
  const known = beginnings.find(([pattern]) => pattern.test(first))?.[1]
  if (known !== undefined) return known
  if (!bytes.includes(0) && isUtf8(bytes)) return 'text'
  const named = extensions.get(extname(path).toLowerCase())
  if (named !== undefined) return named
  throw new MillraceError('usage', `--file ${path}: unknown file type. Attach an image, a PDF, audio, video or text.`)
}
