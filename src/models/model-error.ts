/**
 * Converts a provider's failure into a `MillraceError` with one of these codes:
 *
 * | code | when | retry |
 * |---|---|---|
 * | `model-refused` | 4xx: wrong key, model name or request; `status` is the provider's | no |
 * | `rate-limited` | 429; `retryAfter` in seconds if the provider sets it (`retry-after` header, Google's RetryInfo) | yes, unless the quota is used up |
 * | `model-unavailable` | 5xx, overload, no connection | yes |
 * | `connection-lost` | the connection broke after the request had been accepted | yes |
 * | `model-incomplete` | the stream ended without its final event or with a reason that means failure, or was no answer | yes |
 * | `model-failed` | the model reported an unknown error, or its response is invalid | no |
 * | `missing-key` | a provider package found no key | no |
 * | `line-too-long`, `body-too-large` | the response exceeds the limits of the config | no |
 * | `redirect-refused` | the provider redirected to another origin | no |
 * | `aborted` | our own signal | no |
 *
 * The message has the provider's text without credentials. Texts of the system or of a package (a broken connection, an
 * address) are in `detail`. Neither contains a request or a header. `cause` is the raw error.
 */
import { AISDKError, APICallError } from '@ai-sdk/provider'
import { MillraceError, wordsOf, withoutCredentials } from '../part/error.ts'
import { parseJson } from '../part/json.ts'

/** A model's name for messages. `keyVariables` are the environment variables of its key (set by our resolver). */
export interface NamedModel {
  provider: string
  modelId: string
  /** As the agent names it. A custom provider's model may have any `provider` and `modelId`. */
  written?: string | undefined
  keyVariables?: readonly string[]
  /** Its server is on this machine or in its network (set by our resolver). */
  isLocal?: boolean | undefined
  /** The media types that its servers accept inline (set by our resolver). Undefined: any. */
  takes?: ((mediaType: string) => boolean) | undefined
}

/** Where the failure happened: before the answer started, while reading it, or in an `error` part from the model. */
type ErrorOrigin = 'request' | 'stream' | 'part'

const retryable = new Set(['rate-limited', 'model-unavailable', 'connection-lost', 'model-incomplete'])

const final = new WeakSet<MillraceError>()

/** Marks an error whose request must not be retried, whatever its code. Returns it. */
export function asFinal(error: MillraceError): MillraceError {
  final.add(error)
  return error
}

/** Whether the same request may succeed later. */
export function isRetryable(error: unknown): boolean {
  if (!(error instanceof MillraceError) || final.has(error)) return false
  // OpenAI also answers 429 when the account has no credit left. Waiting does not help then.
  return retryable.has(error.code) && !kindsOf(error.cause).includes('insufficient_quota')
}

export function toModelError(raw: unknown, place: ErrorOrigin, model: NamedModel): MillraceError {
  const own = ownErrorIn(raw)
  if (own !== undefined) return own
  if (isUnfinished(raw)) return incompleteError(model, raw)
  if (isUnreadable(raw)) return unreadableError(model, raw)
  if (raw instanceof FailedEnd) return failedEndError(model, raw)
  const name = nameOf(model)
  if (raw instanceof HtmlAnswer) {
    const message = `${name} sent ${htmlReason(raw.html)} in place of an answer. Check the address of the endpoint.`
    return new MillraceError('model-incomplete', message, { cause: raw })
  }
  const status = statusOf(raw)
  const said = reasonOf(raw)
  const fail = (code: string, text: string, detail?: string) =>
    new MillraceError(code, text, { status, retryAfter: retryAfterOf(raw), detail, cause: raw })

  if (status === 429) return fail('rate-limited', `${name} answered 429: ${said}`)
  if (status !== undefined && (status >= 500 || passing.has(status))) {
    return fail('model-unavailable', `${name} is not available (${status}): ${said}`)
  }
  if (status !== undefined) {
    return fail('model-refused', `${name} refused the request (${status}): ${said}${keyHint(status, model)}`)
  }
  if (place === 'part') return fail('model-failed', `${name} reported an error: ${said}`)
  if (AISDKError.isInstance(raw) && !APICallError.isInstance(raw)) {
    if (raw.name === 'AI_LoadAPIKeyError') return fail('missing-key', `${name} has no key: ${said}`)
    if (raw.name === 'AI_EmptyResponseBodyError') return fail('connection-lost', `${name} sent an empty answer.`)
    return place === 'request'
      ? fail('model-refused', `${name} cannot handle this request: ${said}`)
      : fail('model-failed', `${name} sent an invalid response: ${said}`, isDump(raw) ? wordsOf(raw) : undefined)
  }
  // A status below 400 means that the request was accepted: some provider packages read ahead before `doStream` resolves.
  if (place === 'stream' || (APICallError.isInstance(raw) && raw.statusCode !== undefined)) {
    return fail('connection-lost', `The connection to ${name} broke before the answer was complete.`, wordsOf(raw))
  }
  const network = networkFault(raw)
  if (APICallError.isInstance(raw) || network !== undefined) {
    const why = network === undefined ? '' : ` (${network})`
    return fail('model-unavailable', `${name} cannot be reached${why}.`, wordsOf(raw))
  }
  return fail('model-failed', `${name} failed.`, wordsOf(raw))
}

/** An error that we threw ourselves while a provider's answer was read, unwrapped from the provider package's errors. */
function ownErrorIn(raw: unknown): MillraceError | undefined {
  for (let error = raw, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    if (error instanceof MillraceError) return error
  }
  return undefined
}

/** Matches the `openai-compatible` package's error. It reports an empty answer and an HTML page in the same way. */
function isUnfinished(raw: unknown): boolean {
  return AISDKError.isInstance(raw) && raw.message === 'Response stream ended without a finish reason.'
}

/** An event that is not JSON: an HTML page or a truncated line. The `anthropic` package has its own error for the first event. */
function isUnreadable(raw: unknown): boolean {
  if (raw instanceof BrokenFrame) return true
  if (AISDKError.isInstance(raw)) return raw.name === 'AI_JSONParseError'
  return raw instanceof Error && raw.message === 'Expected a normalized Anthropic stream error'
}

function unreadableError(model: NamedModel, cause: unknown): MillraceError {
  const message = `${nameOf(model)} sent a response that is not valid JSON or was cut off.`
  const detail = cause instanceof BrokenFrame ? undefined : wordsOf(cause)
  return new MillraceError('model-incomplete', message, { detail, cause })
}

/** The provider reports that there is no answer, or the answer cannot be used. */
export function failedEndError(model: NamedModel, cause: FailedEnd): MillraceError {
  const { raw, message: why } = cause
  const how = raw === undefined ? 'ended its answer with an error' : `ended its answer with "${raw}"`
  const said = why === '' ? '' : `: ${why}`
  return new MillraceError('model-incomplete', `${nameOf(model)} ${how}${said}.`, { cause })
}

export function incompleteError(model: NamedModel, cause?: unknown): MillraceError {
  return new MillraceError(
    'model-incomplete',
    `The answer of ${nameOf(model)} ended without its final event, so it is incomplete.`,
    { cause },
  )
}

export function abortedError(signal: AbortSignal): MillraceError {
  return new MillraceError('aborted', 'The model call was stopped.', { cause: signal.reason })
}

/** `openai.responses` and `gpt-5` → `openai:gpt-5`, as in agent files. */
function nameOf({ provider, modelId, written }: NamedModel): string {
  // A bare `gpt-5` is written out.
  return written?.includes(':') === true ? written : `${provider.split('.')[0]}:${modelId}`
}

function keyHint(status: number, { keyVariables }: NamedModel): string {
  if ((status !== 401 && status !== 403) || !keyVariables?.length) return ''
  return ` (check ${keyVariables.join(' or ')})`
}

/** Temporary 4xx: request timeout, conflict, too early. */
const passing = new Set([408, 409, 425])

/** Errors inside a stream have no HTTP status. The provider's name for the error implies it; the first that fits wins. */
const statusOfKind: readonly (readonly [RegExp, number])[] = [
  [/insufficient_quota|rate_limit|too_many_requests|throttl|RESOURCE_EXHAUSTED/i, 429],
  [/overloaded|UNAVAILABLE/i, 503],
  [/timeout|DEADLINE_EXCEEDED/i, 504],
  [/authentication|invalid_api_key|UNAUTHENTICATED/i, 401],
  [/permission/i, 403],
  [/not_found/i, 404],
  [/too_large/i, 413],
  [/invalid|bad_request|billing|context_length|FAILED_PRECONDITION|OUT_OF_RANGE/i, 400],
  [/server_error|internal|api_error|ABORTED|DATA_LOSS/i, 500],
]

function statusOf(raw: unknown): number | undefined {
  for (const record of layers(raw)) {
    for (const value of [record['statusCode'], record['status'], record['code']]) {
      const number = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value
      if (typeof number === 'number' && number >= 400 && number <= 599) return number
    }
  }
  const words = kindsOf(raw)
  return statusOfKind.find(([kind]) => words.some((word) => kind.test(word)))?.[1]
}

function kindsOf(raw: unknown): string[] {
  const all = layers(raw).flatMap((record) => [record['code'], record['type'], record['status']])
  return all.filter((value) => typeof value === 'string')
}

/** Providers nest the error record: `{error: {…}}`, `{response: {error: {…}}}`, `APICallError.data.error`. */
function layers(raw: unknown): Record<string, unknown>[] {
  if (Array.isArray(raw)) return raw.slice(0, 3).flatMap(layers)
  if (!isRecord(raw)) return []
  const { error, response, data } = raw
  const inner = [error, isRecord(response) && response['error'], isRecord(data) && data['error'], data]
  return [raw, ...inner.filter(isRecord)]
}

function retryAfterOf(raw: unknown): number | undefined {
  const headers: Record<string, string> = (APICallError.isInstance(raw) && raw.responseHeaders) || {}
  const ms = Number.parseFloat(headers['retry-after-ms'] ?? '')
  if (ms >= 0) return ms / 1000
  const after = headers['retry-after'] ?? ''
  const seconds = /^\s*\d/.test(after) ? Number.parseFloat(after) : (Date.parse(after) - Date.now()) / 1000
  if (!Number.isNaN(seconds)) return Math.max(0, seconds)
  return retryInfo(raw)
}

/** `{"error":{"details":[{"@type":"…RetryInfo","retryDelay":"34.4s"}]}}` → 34.4. */
function retryInfo(raw: unknown): number | undefined {
  const bodies = APICallError.isInstance(raw) ? [raw.data, jsonIn(raw.responseBody)] : [raw]
  for (const record of bodies.flatMap(layers)) {
    const details = Array.isArray(record['details']) ? record['details'].filter(isRecord) : []
    const info = details.find((detail) => String(detail['@type']).endsWith('RetryInfo'))
    const seconds = Number.parseFloat(String(info?.['retryDelay']))
    if (seconds >= 0) return seconds
  }
  return undefined
}

/** The system's code of a network failure, such as `ECONNREFUSED`. */
function networkFault(raw: unknown): string | undefined {
  for (let error = raw, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    const code = String((error as { code?: unknown }).code)
    if (/^(E[A-Z]+|UND_ERR_\w+)$/.test(code)) return code
    if (error.name === 'AbortError' || error.name === 'TimeoutError') return error.name
  }
  return undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The provider's message in an error of any form: servers that imitate OpenAI's have many. */
const page = 'an HTML page'
const nothingSaid = 'no reason given'

/** The fields that may have it, the likeliest first. */
const places = [
  'error',
  'message',
  'detail',
  'msg',
  'errors',
  'error_description',
  'reason',
  'title',
  'response',
  'data',
] as const

/** A long text is truncated when it is recorded, after secrets have been redacted. */
function reasonOf(raw: unknown): string {
  return withoutCredentials(textOf(raw)) || nothingSaid
}

function textOf(raw: unknown): string {
  if (!(raw instanceof Error)) return reasonIn(raw) ?? wordsOf(raw)
  // Without its causes, which may contain anything.
  const given = APICallError.isInstance(raw) ? (reasonIn(raw.responseBody) ?? reasonIn(raw.data)) : undefined
  if (given === page) return `${raw.message} (${page})`
  return given ?? (isDump(raw) ? 'the answer is not one of its protocol' : raw.message)
}

/** A validator's long list of expectations, which is unreadable. */
function isDump(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return error.name.endsWith('ZodError') || (AISDKError.isInstance(error) && error.name === 'AI_TypeValidationError')
}

/** Undefined if there is none. */
function reasonIn(value: unknown, depth = 0): string | undefined {
  if (depth > 8) return undefined
  if (typeof value === 'string') return reasonInText(value.trim(), depth)
  if (Array.isArray(value)) {
    const all = value.slice(0, 3).map((each) => reasonIn(each, depth + 1))
    return all.filter((each) => each !== undefined).join('; ') || undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const fields = value as Record<string, unknown>
  let found: string | undefined
  for (const place of places) found ??= reasonIn(fields[place], depth + 1)
  if (found === undefined) return undefined
  const { loc } = fields
  const where = Array.isArray(loc) && typeof fields['msg'] === 'string' ? `${loc.join('.')}: ` : ''
  // Gateways put the provider's message here.
  const { raw } = (typeof fields['metadata'] === 'object' ? (fields['metadata'] ?? {}) : {}) as { raw?: unknown }
  const nested = reasonIn(raw, depth + 1)
  return where + (nested === undefined || found.includes(nested) ? found : `${found}: ${nested}`)
}

function reasonInText(text: string, depth: number): string | undefined {
  if (text === '' || text === '{}' || text === '[]') return undefined
  if (text[0] === '<') return htmlReason(text)
  const inner = /^[[{]/.test(text) ? jsonIn(text) : undefined
  return inner === undefined ? text : (reasonIn(inner, depth + 1) ?? text)
}

/** A proxy or a wrong address responds with a page. */
function htmlReason(html: string): string {
  const title = /<(title|h1)[^>]*>([^<]+)</i.exec(html)?.[2]?.trim().replaceAll(/\s+/g, ' ')
  return title ? `${page}: "${title.slice(0, 200)}"` : page
}

function jsonIn(text: string | undefined): unknown {
  try {
    return parseJson(text ?? '')
  } catch {
    return undefined
  }
}

/* Signs of a broken answer, besides the provider's errors. */

/** A truncated event: its content is lost. */
export class BrokenFrame extends Error {}

export class HtmlAnswer extends Error {
  readonly html: string
  constructor(html: string) {
    super('HTML')
    this.html = html
  }
}

/** The provider reports that there is no answer. */
export class FailedEnd extends Error {
  readonly raw: string | undefined
  constructor(raw: string | undefined, why: string | undefined) {
    super(why ?? '')
    this.raw = raw
  }
}
