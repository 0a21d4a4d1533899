/** The claims of a verified token → the principal. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { ownValue } from '../../part/own-value.ts'
import { roles as knownRoles, type Claim, type Principal } from '../../part/principal.ts'
import type { ClaimNames } from '../../project/config.ts'

/** The maximum length of an id, a tenant and a name. */
const longest = 256

/** Ids that the server itself gives to programs and visitors. A token with such an id would be somebody else. */
const ownIds = /^(?:key|anonymous):/u

/** A claim is missing or of a wrong type. The message is for the operator: it names the claim and never its value. */
export class ClaimError extends Error {
  override readonly name = 'ClaimError'
}

/**
 * `claims`: the names of those that reach the principal. Throws a `ClaimError`. A tenant that the config names and the token lacks is an error: an
 * admin without a tenant is one of all tenants.
 */
export function principalOfClaims(
  payload: Readonly<Record<string, unknown>>,
  names: ClaimNames,
  claims: readonly string[] = [],
): Principal {
  const { user = 'sub', tenant, roles } = names
  const id = textClaim(payload, user)
  if (ownIds.test(id)) throw new ClaimError(`The claim ${user} begins like the id of a key or a visitor.`)
  const name = ownValue(payload, 'name')
  const shown = claims.flatMap((each): [string, Claim][] => {
    const value = claimOf(payload, each)
    if (value === undefined || value === null) return []
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') {
      throw new ClaimError(`The claim ${each} must be a text, a number, true or false.`)
    }
    return [[each, value]]
  })
  return omitUndefined({
    id,
    tenant: tenant === undefined ? undefined : textClaim(payload, tenant),
    roles: roles === undefined ? (['user'] as const) : rolesClaim(payload, roles),
    name: typeof name === 'string' && name !== '' && name.length <= longest ? name : undefined,
    claims: shown.length === 0 ? undefined : Object.fromEntries(shown),
  })
}

function textClaim(payload: Readonly<Record<string, unknown>>, name: string): string {
  const value = claimOf(payload, name)
  // Stores write half a surrogate pair as `\uFFFD`: all such ids would be the same owner.
  if (typeof value === 'string' && value !== '' && value.length <= longest && value.isWellFormed()) return value
  throw new ClaimError(`The claim ${name} must be a text of 1 to ${longest} characters.`)
}

/** Roles of other programs are not ours. Without any of ours: `user`. */
function rolesClaim(payload: Readonly<Record<string, unknown>>, name: string): Principal['roles'] {
  const value = claimOf(payload, name)
  const given: unknown = typeof value === 'string' ? value.split(/[\s,]+/u) : (value ?? [])
  if (!Array.isArray(given) || !given.every((each) => typeof each === 'string')) {
    throw new ClaimError(`The claim ${name} must be a text or a list of texts.`)
  }
  const ours = knownRoles.filter((each) => given.includes(each))
  return ours.length > 0 ? ours : ['user']
}

/** By its name, which may contain dots (`https://example.com/roles`), or by a path (`realm_access.roles`). */
function claimOf(payload: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(payload, name)) return ownValue(payload, name)
  let value: unknown = payload
  for (const key of name.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined
    value = ownValue(value as Record<string, unknown>, key)
  }
  return value
}
