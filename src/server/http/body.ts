/** Reads and checks JSON request bodies, with a size limit. */
import { messageOf, MillraceError } from '../../part/error.ts'
import { isDeepText, maxDepth, parseFinite } from '../../part/json.ts'
import { readMessage, claimMessage, type OnPiece } from './incoming-request.ts'
import { ownValue } from '../../part/own-value.ts'

/** Clients return received values inside their messages, so a body may be somewhat deeper than a value. */
const deepest = maxDepth + 32
/** The content type of nearly all clients. */
const plain = 'application/json'

export async function readJson(request: Request, maxBytes: number): Promise<Record<string, unknown>> {
  const value = await readJsonValue(request, maxBytes, 'a JSON object')
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new MillraceError('bad-json', 'The body must be a JSON object.')
  }
  return value as Record<string, unknown>
}

/** A body of any JSON. `what`: in the error for an empty one. */
export async function readJsonValue(request: Request, maxBytes: number, what = 'JSON'): Promise<unknown> {
  const type = request.headers.get('content-type')
  // A missing type is refused, too: a page of another origin can send that without a preflight, but not JSON.
  if (type !== plain && !/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/iu.test(type ?? '')) {
    const cure = 'The body must be JSON: send content-type: application/json'
    throw new MillraceError('unsupported-type', type === null ? `${cure}.` : `${cure}, not ${type}.`)
  }
  checkEncoding(request.headers)
  const text = await readText(request, maxBytes)
  if (text.trim() === '') throw new MillraceError('bad-json', `The body is empty; it must be ${what}.`)
  if (isDeepText(text, deepest))
    throw new MillraceError('bad-json', `The body is nested deeper than ${deepest} levels.`)
  try {
    return parseFinite(text)
  } catch (error) {
    throw new MillraceError('bad-json', `The body is not valid JSON: ${messageOf(error)}`)
  }
}

/** Compressed bodies are refused: they could decompress to any size. */
function checkEncoding(headers: Headers): void {
  const coding = headers.get('content-encoding')?.trim() ?? ''
  if (coding !== '' && !/^identity$/iu.test(coding)) {
    const cure = 'Send it uncompressed, without a content-encoding header.'
    throw new MillraceError('unsupported-type', `The body is compressed (${coding.slice(0, 40)}). ${cure}`)
  }
  const type = headers.get('content-type') ?? ''
  if (type === plain) return
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/iu.exec(type)?.[1] ?? 'utf-8'
  if (!/^(?:utf-?8|us-ascii)$/iu.test(charset)) {
    throw new MillraceError('unsupported-type', `The body must be UTF-8, not ${charset.slice(0, 40)}.`)
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Reads a body of this type in chunks, up to a size, as fast as `onPiece` takes them. An error of `onPiece` ends it. */
export async function readPieces(
  request: Request,
  { type, maxBytes }: { type: string; maxBytes: number },
  onPiece: (piece: Uint8Array) => Promise<void>,
): Promise<void> {
  const given = request.headers.get('content-type')
  if (given?.split(';')[0]!.trim().toLowerCase() !== type) {
    const cure = `The body must be NDJSON: send content-type: ${type}`
    throw new MillraceError('unsupported-type', given === null ? `${cure}.` : `${cure}, not ${given}.`)
  }
  checkEncoding(request.headers)
  await readBytes(request, maxBytes, onPiece)
}

async function readText(request: Request, maxBytes: number): Promise<string> {
  const pieces: Uint8Array[] = []
  const cure = ' The operator can raise server.maxBodyBytes in the config.'
  const bytes = await readBytes(request, maxBytes, (piece) => void pieces.push(piece), cure)
  try {
    return utf8.decode(pieces.length === 1 ? pieces[0] : joined(pieces, bytes))
  } catch {
    throw new MillraceError('bad-json', 'The body is not valid UTF-8.')
  }
}

/** Returns the number of bytes. */
async function readBytes(request: Request, maxBytes: number, onPiece: OnPiece, cure = ''): Promise<number> {
  const tooLarge = () => new MillraceError('too-large', `The body is larger than ${maxBytes} bytes.${cure}`)
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge()
  // Content-Length may be missing or wrong, so the bytes are counted as well.
  let bytes = 0
  const collect = (piece: Uint8Array) => {
    bytes += piece.byteLength
    if (bytes > maxBytes) throw tooLarge()
    return onPiece(piece)
  }
  try {
    const message = claimMessage(request)
    if (message !== undefined) await readMessage(message, collect)
    else await readStream(request.body, collect)
  } catch (error) {
    if (error instanceof MillraceError) throw error
    // The client disconnected while sending. This is not a server error.
    throw new MillraceError('bad-request', `The body was cut off: ${messageOf(error)}`, { cause: error })
  }
  return bytes
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.byteLength
  }
  return bytes
}

async function readStream(body: ReadableStream<Uint8Array> | null, onPiece: OnPiece): Promise<void> {
  const reader = body?.getReader()
  try {
    for (;;) {
      const { done = true, value } = (await reader?.read()) ?? {}
      if (done) return
      await onPiece(value!)
    }
  } catch (error) {
    void reader?.cancel().catch(() => undefined)
    throw error
  }
}

/** An optional name or id: 1 to 256 characters that every store can keep. Throws `bad-input`. */
export function optionalText(body: Record<string, unknown>, name: string): string | undefined {
  const value = ownValue(body, name)
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string' || value === '' || value.length > 256) {
    throw new MillraceError('bad-input', `${name} must be a string of 1 to 256 characters.`)
  }
  if (!value.isWellFormed() || /\p{Cc}/u.test(value)) {
    throw new MillraceError('bad-input', `${name} must not contain control characters or unpaired surrogates.`)
  }
  return value
}
