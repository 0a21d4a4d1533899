/** What a provider says went wrong, whatever the form of its error: the servers that resemble OpenAI's have many. */
import { AISDKError, APICallError } from '@ai-sdk/provider'
import { withoutCredentials, wordsOf } from '../part/error-words.ts'
import { parseJson } from '../part/json.ts'

const page = 'an HTML page'
const nothingSaid = 'no reason given'

/** The fields that may hold it, the likeliest first. */
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
export function reasonOf(raw: unknown): string {
  return withoutCredentials(textOf(raw)) || nothingSaid
}

function textOf(raw: unknown): string {
  if (!(raw instanceof Error)) return reasonIn(raw) ?? wordsOf(raw)
  // Not of its causes, which may contain anything.
  const given = APICallError.isInstance(raw) ? (reasonIn(raw.responseBody) ?? reasonIn(raw.data)) : undefined
  if (given === page) return `${raw.message} (${page})`
  return given ?? (isDump(raw) ? 'the answer is not one of its protocol' : raw.message)
}

/** A validator's list of all that it expected: nobody can read it. */
export function isDump(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return error.name.endsWith('ZodError') || (AISDKError.isInstance(error) && error.name === 'AI_TypeValidationError')
}

/** Undefined if there is none. */
export function reasonIn(value: unknown, depth = 0): string | undefined {
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
  // A gateway has the words of the provider behind it here.
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

/** A proxy or a wrong address answers with a page. */
export function htmlReason(html: string): string {
  const title = /<(title|h1)[^>]*>([^<]+)</i.exec(html)?.[2]?.trim().replaceAll(/\s+/g, ' ')
  return title ? `${page}: "${title.slice(0, 200)}"` : page
}

export function jsonIn(text: string | undefined): unknown {
  try {
    return parseJson(text ?? '')
  } catch {
    return undefined
  }
}
