/** A principal from what an application or a token says, checked: ids, tenants, roles and claims. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { ownValue } from '../../part/own-value.ts'
import { roles as knownRoles, type Claim, type Principal } from '../../part/principal.ts'

export const longestId = 256

/** Ids that no one but we give: those of keys, and of browsers without a name. */
const ours = /^(?:key|anonymous):/u

export function isId(value: unknown): value is string {
  return isName(value) && !ours.test(value)
}

/** An empty tenant would be that of everybody without one. Stores write half a surrogate pair as `\uFFFD`: all such texts would be the same owner. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length >= 1 && value.length <= longestId && value.isWellFormed()
}

export interface Told {
  id: unknown
  tenant?: unknown
  roles?: unknown
  name?: unknown
  claims?: unknown
  expiresAt?: unknown
}

/** Undefined if it cannot be used. `listed`: the claims that count; default all. Roles that are not ours do not count; without roles it is a user. */
export function toldPrincipal(told: Told, listed?: readonly string[]): Principal | undefined {
  const { id, tenant, name, expiresAt } = told
  if (!isId(id) || (tenant !== undefined && !isName(tenant))) return undefined
  if (name !== undefined && typeof name !== 'string') return undefined
  if (expiresAt !== undefined && !Number.isFinite(expiresAt)) return undefined
  const given = told.roles ?? ['user']
  if (!Array.isArray(given) || !given.every((each) => typeof each === 'string')) return undefined
  const roles = knownRoles.filter((each) => given.includes(each))
  const claims = claimsIn(told.claims, listed)
  if (roles.length === 0 || claims === undefined) return undefined
  return {
    id,
    roles,
    ...omitUndefined({ tenant, name: name?.slice(0, longestId), expiresAt: expiresAt as number | undefined }),
    ...(Object.keys(claims).length > 0 && { claims }),
  }
}

/** Undefined if one that is listed has the wrong type. */
function claimsIn(given: unknown, listed: readonly string[] | undefined): Record<string, Claim> | undefined {
  if (given === undefined || given === null) return {}
  if (!isObject(given)) return undefined
  const found: [string, Claim][] = []
  for (const name of listed ?? Object.keys(given)) {
    const value = ownValue(given, name)
    if (value === undefined) continue
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return undefined
    found.push([name, value])
  }
  return Object.fromEntries(found)
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
