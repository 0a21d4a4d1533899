/** Converts headers and bodies between undici's dispatcher format and the Fetch API. */

const nullBody: ReadonlySet<number> = new Set([204, 205, 304])

export function toHeaders(raw: readonly Buffer[]): Headers {
  const headers = new Headers()
  for (let i = 0; i < raw.length; i += 2) headers.append(raw[i]!.toString('latin1'), raw[i + 1]!.toString('latin1'))
  return headers
}

export function toResponse(
  status: number,
  statusText: string,
  headers: Headers,
  body: ReadableStream<Uint8Array>,
): Response {
  return new Response(nullBody.has(status) ? null : decoded(body, headers), {
    status,
    // A gateway may send any text here, but `Response` accepts only Latin-1. Nothing reads it.
    statusText: /^[\t -~\u0080-\u00ff]*$/u.test(statusText) ? statusText : '',
    headers,
  })
}

/** We never request compression, because it delays deltas. Some servers compress anyway. */
function decoded(body: ReadableStream<Uint8Array>, headers: Headers): ReadableStream<Uint8Array> {
  let plain = body
  for (const format of decodingsOf(headers)) {
    plain = plain.pipeThrough(new DecompressionStream(format) as ReadableWritablePair<Uint8Array, Uint8Array>)
  }
  return plain
}

/** In decoding order: the last encoding applied comes first. */
export function decodingsOf(headers: Headers): CompressionFormat[] {
  const codings = headers.get('content-encoding')?.toLowerCase().split(',').toReversed() ?? []
  return codings.flatMap((coding) => formats.get(coding.trim()) ?? [])
}

const formats = new Map<string, CompressionFormat>([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'brotli' as CompressionFormat],
])

export function listOf(given: RequestInit['headers']): string[] {
  const headers = new Map<string, string>([
    ['accept', '*/*'],
    ['accept-encoding', 'identity'],
  ])
  const isPlain = given === undefined || (Object.getPrototypeOf(given) === Object.prototype && isTrimmed(given))
  for (const [name, value] of isPlain ? Object.entries(given ?? {}) : new Headers(given)) {
    headers.set(name.toLowerCase(), value as string)
  }
  const list: string[] = []
  for (const [name, value] of headers) list.push(name, value)
  return list
}

/** Whether `Headers` would not change the values: it trims whitespace and rejects invalid characters. */
function isTrimmed(given: object): boolean {
  return Object.values(given).every((value) => typeof value === 'string' && /^(?:[!-~](?:[ -~]*[!-~])?)?$/u.test(value))
}
