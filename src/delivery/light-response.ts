/**
 * A streamed delivery as a lazy `Response`. Our own listener needs only its head and the source of its body: a real `Response`, with its `Headers`
 * and its stream, would be a good part of the delay between the model's first word and the client.
 */
import { ownValue } from '../part/own-value.ts'
import { standIn } from './stand-in.ts'
import { onSourceEnd, sourceOf, toBody, type BodySource } from './streamed-body.ts'

type Bytes = string | Uint8Array
type HeaderRecord = Readonly<Record<string, string>>

/** The data for a listener: status 200 with this head, then the source. */
export interface LightAnswer {
  head: Record<string, string | string[]>
  source: BodySource<Bytes>
}

class LightResponse {
  readonly status = 200
  readonly #head: HeaderRecord
  readonly #source: BodySource<Bytes>
  #headers: Headers | undefined
  #real: Response | undefined

  constructor(head: HeaderRecord, source: BodySource<Bytes>) {
    this.#head = head
    this.#source = source
  }

  get headers(): Headers {
    return this.#real?.headers ?? (this.#headers ??= new Headers(this.#head))
  }

  get body(): ReadableStream<Uint8Array> | null {
    return this.#made().body
  }

  #made(): Response {
    return (this.#real ??= new Response(toBody(this.#source), { headers: this.headers }))
  }

  static real(response: object): Response | undefined {
    return #real in response ? response.#made() : undefined
  }

  static answer(response: object): LightAnswer | undefined {
    if (!(#real in response) || response.#real !== undefined) return undefined
    const head = response.#headers === undefined ? { ...response.#head } : recordOf(response.#headers)
    return { head, source: response.#source }
  }

  static header(response: object, name: string): string | null | undefined {
    if (!(#head in response) || response.#headers !== undefined || response.#real !== undefined) return undefined
    return ownValue(response.#head, name) ?? null
  }
}

let isComplete = false

/** `head`: names in lower case. */
export function lightResponse(head: HeaderRecord, source: BodySource<Bytes>): Response {
  if (!isComplete) standIn(LightResponse.prototype, Response, (given) => LightResponse.real(given)!)
  isComplete = true
  const response: object = new LightResponse(head, source)
  return response as Response
}

/** A real `Response`, which other servers and the platform's functions require. */
export function realResponse(response: Response): Response {
  return LightResponse.real(response) ?? response
}

/** The head and source of a delivery whose body was not requested. Undefined for any other response. */
export function lightAnswer(response: Response): LightAnswer | undefined {
  return LightResponse.answer(response)
}

/** A header, without creating `Headers`. `name`: in lower case. */
export function headerOf(response: Response, name: string): string | null {
  const found = LightResponse.header(response, name)
  return found === undefined ? response.headers.get(name) : found
}

/** Headers as `node:http` takes them. */
export function recordOf(headers: Headers): Record<string, string | string[]> {
  const cookies = headers.getSetCookie()
  return { ...Object.fromEntries(headers), ...(cookies.length > 0 ? { 'set-cookie': cookies } : undefined) }
}

/** Calls `then` once, when a delivery was read, failed, or was cancelled. False if the response is not a streamed delivery. */
export function onAnswerEnd(response: Response, then: () => void): boolean {
  const source = lightAnswer(response)?.source ?? (response.body === null ? undefined : sourceOf(response.body))
  if (source === undefined) return false
  onSourceEnd(source, then)
  return true
}

/** The response to HEAD: cancels the stream. */
export async function withoutBody(response: Response): Promise<Response> {
  const light = lightAnswer(response)
  if (light === undefined) await response.body?.cancel()
  else light.source.cancel()
  return new Response(null, response)
}
