/** Attached files as message parts: text files as text, everything else as data with a media type. */
import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import type { CommandContext } from './context.ts'
import { MillraceError } from '../part/error.ts'
import type { FileContent, TextContent } from '../part/message.ts'

/** Maximum bytes of all files together. Base64 adds a third. */
const most = 20 * 1024 * 1024

/** Throws `usage` for a file that is missing, too large or of an unknown type. Without files, returns the text. */
export function withFiles(
  context: CommandContext,
  text: string,
  paths: readonly string[],
): string | (TextContent | FileContent)[] {
  if (paths.length === 0) return text
  let left = most
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
      `--file ${path} is too large: the limit for all files together is ${most / 2 ** 20} MiB.`,
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
