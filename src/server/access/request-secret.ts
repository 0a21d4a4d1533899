/** The secret that a request sends in its headers, if any. */
import { twoCredentials } from './refusals.ts'

/** Throws `two-credentials` if `Authorization` and `X-API-Key` differ. Empty: a header that says nothing. Undefined: no header. */
export function secretIn(headers: Headers): string | undefined {
  const authorization = headers.get('authorization')
  const key = headers.get('x-api-key')
  const bearer = authorization === null ? undefined : (/^Bearer\s+(\S.*)$/iu.exec(authorization)?.[1]?.trim() ?? '')
  // Headers that are sent twice are joined.
  if (/,\s*Bearer\s/iu.test(bearer ?? '') || key?.includes(', ') === true) throw twoCredentials()
  if (bearer === undefined || bearer === '') return key ?? bearer
  if (key !== null && key !== bearer) throw twoCredentials()
  return bearer
}
