/**
 * Sends a `Response` returned by a step as the answer. A `Response` that the step created is sent with its status, headers and
 * body. A fetched `Response` with an error status fails the step, because the error concerns the step's request, not the client's.
 */
import { MillraceError } from '../../part/error.ts'
import type { ResponseHead } from '../../part/response-head.ts'
import { toReader, type SourceReader } from '../../relay/source-reader.ts'

export interface ReturnedResponse {
  head: ResponseHead
  body: SourceReader<unknown>
  /** Decodes the body to text. */
  decoder: TextDecoder
  mediaType: string
  cookies: readonly string[]
}

/** Headers of a single connection (RFC 9110, 7.6.1), headers that our server sets itself, and credentials. */
const dropped = new Set(
  'connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade content-length date x-millrace-run-id set-cookie set-cookie2'.split(
    ' ',
  ),
)
/** Headers of a fetched response that only apply to the other server or its origin. */
const foreign = /^(?:access-control-.*|alt-svc|strict-transport-security|content-encoding)$/u

const textTypes =
  /^(?:text\/.*|application\/(?:.*\+)?(?:json|xml|yaml|x-yaml|javascript|ecmascript|graphql|x-ndjson|jsonl|x-www-form-urlencoded)|image\/svg\+xml)$/u

/** Checks the shape, because the object may come from another realm. */
export function isResponse(value: object): value is Response {
  return 'headers' in value && 'status' in value && 'body' in value && typeof (value as Response).text === 'function'
}

/** Throws `bad-response`, after closing the body, if the response cannot be sent. */
export function readResponse(response: Response): ReturnedResponse {
  const { body, bodyUsed, status, statusText, url } = response
  const wasFetched = typeof url === 'string' && url !== ''
  const reader = toReader<unknown>(bodyUsed ? [] : (body ?? []))
  const bad = (why: string) => {
    reader.dispose()
    return new MillraceError('bad-response', why)
  }
  if (bodyUsed) throw bad('its Response has already been read. Return a clone of it, or the data that was read.')
  const isStatus = Number.isInteger(status) && status >= 200 && status <= 599
  if (!isStatus || (wasFetched && status >= 400)) throw bad(`its Response has status ${status}.`)

  const given = [...response.headers].map(([name, value]) => [name.toLowerCase(), value] as const)
  const all = new Map(given)
  const connection = new Set((all.get('connection') ?? '').split(',').map((name) => name.trim().toLowerCase()))
  const type = all.get('content-type') ?? ''
  const mediaType = type.split(';')[0]!.trim().toLowerCase()
  // `fetch` has already decoded its body. A Response that the step created is sent in the encoding that it declares.
  const isEncoded = !wasFetched && !['', 'identity'].includes(all.get('content-encoding') ?? '')
  const isText = !isEncoded && (mediaType === '' || textTypes.test(mediaType))
  const headers = given
    .filter(([name]) => !dropped.has(name) && !connection.has(name) && !(wasFetched && foreign.test(name)))
    // Text is recorded and sent as UTF-8.
    .map(([name, value]): [string, string] => [
      name,
      isText && name === 'content-type' ? value.replace(/(;\s*charset=)(?!"?utf-8)[^;]*/iu, '$1utf-8') : value,
    ])
  const head: ResponseHead = { status, headers }
  if (typeof statusText === 'string' && statusText !== '') head.statusText = statusText
  if (!isText) head.binary = true
  return {
    head,
    body: reader,
    decoder: decoderOf(type),
    mediaType: mediaType === '' ? 'application/octet-stream' : mediaType,
    // Never pass on cookies of another server.
    cookies: wasFetched ? [] : (response.headers.getSetCookie?.() ?? []),
  }
}

function decoderOf(type: string): TextDecoder {
  const charset = /;\s*charset="?([^;"]+)/iu.exec(type)?.[1]?.trim() ?? 'utf-8'
  try {
    return new TextDecoder(charset, { ignoreBOM: true })
  } catch {
    return new TextDecoder('utf-8', { ignoreBOM: true })
  }
}
