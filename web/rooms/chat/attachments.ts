/** Files that the reader adds to a message: read as data, refused when the server would refuse them. */
import { bytes } from '../../kit/format.ts'
import type { Attachment } from './send.ts'

/** Words of files whose type the browser does not know: code, logs, YAML. */
const textEndings =
  /\.(?:txt|md|csv|tsv|json|jsonl|ya?ml|toml|log|xml|html|css|[cm]?[jt]sx?|py|rb|go|rs|java|kt|c|h|cpp|sh|sql)$/iu

/** Reads files. `limit`: bytes of a request; Base64 makes a third more of them, and the rest of the request needs room too. */
export async function readFiles(
  files: readonly File[],
  has: readonly Attachment[],
  limit: number,
): Promise<{ attachments: Attachment[]; faults: string[] }> {
  const attachments: Attachment[] = []
  const faults: string[] = []
  let room = Math.floor((limit - 64 * 1024) * 0.74) - has.reduce((sum, each) => sum + each.bytes, 0)
  for (const file of files) {
    const mediaType = mediaTypeOf(file)
    if (mediaType === undefined) {
      faults.push(`${file.name}: images, texts and PDF can be attached.`)
    } else if (file.size > room) {
      faults.push(`${file.name} has ${bytes(file.size)}; there is room for ${bytes(Math.max(0, room))} in a message.`)
    } else {
      room -= file.size
      attachments.push({ name: file.name, mediaType, url: await toDataUrl(file, mediaType), bytes: file.size })
    }
  }
  return { attachments, faults }
}

function mediaTypeOf({ type, name }: File): string | undefined {
  if (type.startsWith('image/') || type.startsWith('text/') || type === 'application/pdf') return type.split(';', 1)[0]!
  if (type === 'application/json' || textEndings.test(name)) return 'text/plain'
  return undefined
}

async function toDataUrl(file: File, mediaType: string): Promise<string> {
  const data = new Uint8Array(await file.arrayBuffer())
  const pieces: string[] = []
  for (let at = 0; at < data.length; at += 0x8000) pieces.push(String.fromCharCode(...data.subarray(at, at + 0x8000)))
  return `data:${mediaType};base64,${btoa(pieces.join(''))}`
}
