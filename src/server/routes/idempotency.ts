/**
 * `Idempotency-Key`: with the same request it returns the same run, with a different request it is refused, as in
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/. Otherwise the client would take the response to one request for the
 * response to another.
 */
import { MillraceError } from '../../part/error.ts'
import type { Log } from '../../part/log.ts'
import { hashText } from '../http/key.ts'
import { bad } from '../http/query.ts'
import { ownValue } from '../../part/own-value.ts'

/** The key of the request, if any. Throws `bad-input`. */
export function idempotencyKey({ headers }: Request): string | undefined {
  const key = headers.get('idempotency-key')?.trim()
  if (key === '' || (key !== undefined && key.length > 256)) throw bad('Idempotency-Key', '1 to 256 characters')
  return key
}

/**
 * Binds the key to this body permanently, or throws `idempotency-key-reused` (422). Call it after validation, so that a client
 * can fix a refused request and send it with the same key.
 */
export async function bindKey(log: Log, key: string, body: unknown): Promise<void> {
  const digest = await hashText(canonicalJson(body))
  const { message } = await log.post(`key:${key}`, 'body', { digest })
  if ((message as { digest: string }).digest === digest) return
  const cure = 'Use a new key for each new request.'
  throw new MillraceError(
    'idempotency-key-reused',
    `This Idempotency-Key was already used with a different body. ${cure}`,
  )
}

/** JSON with sorted keys. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const keys = Object.keys(value).toSorted()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(ownValue(value as Record<string, unknown>, key))}`).join(',')}}`
}
