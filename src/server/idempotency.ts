/**
 * `Idempotency-Key`: sent again with the same request it finds the same run; with another one it is refused, as
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/ wants it, because whoever sent it would
 * take the answer to one request for that to another.
 */
import { MillraceError } from '../part/error.ts'
import type { Log } from '../part/log.ts'
import { bad } from './query.ts'
import { ownValue } from '../part/own-value.ts'

/** The request's key, if it has one. Throws `bad-input`. */
export function idempotencyKey({ headers }: Request): string | undefined {
  const key = headers.get('idempotency-key')?.trim()
  if (key === '' || (key !== undefined && key.length > 256)) throw bad('Idempotency-Key', '1 to 256 characters')
  return key
}

/**
 * Binds the key to what this request asks for, for ever, or throws `idempotency-key-reused` (422). Call it once the
 * request is known to be a good one: one that was refused and then mended may come with the same key.
 */
export async function bindKey(log: Log, key: string, body: unknown): Promise<void> {
  const digest = await digestOf(canonical(body))
  const { message } = await log.post(`key:${key}`, 'body', { digest })
  if ((message as { digest: string }).digest === digest) return
  const cure = 'Send a new key with a new request, and the same request with the same key.'
  throw new MillraceError('idempotency-key-reused', `This Idempotency-Key came with another body before. ${cure}`)
}

/** JSON in which the order of keys, which means nothing, is always the same. */
function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const keys = Object.keys(value).toSorted()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(ownValue(value as Record<string, unknown>, key))}`).join(',')}}`
}

async function digestOf(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
