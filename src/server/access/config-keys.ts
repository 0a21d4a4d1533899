/** The keys of the config, whose secrets are in environment variables. */
import { ownValue } from '../../part/own-value.ts'
import { MillraceError } from '../../part/error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Principal } from '../../part/principal.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { endOf, endWords } from '../../project/access-values.ts'
import type { AccessConfig } from '../../project/config.ts'
import type { Env } from '../../project/registry.ts'
import { digestOf } from './digest.ts'
import { principalOf } from './key-book.ts'

/** The least number of characters of a key. */
export const shortestKey = 32

export interface ConfigKeys {
  find(digest: string, now: number): Principal | undefined
  names: ReadonlySet<string>
}

/** Rejects with `bad-config` for a variable that is not set, a short key, and a name or a secret that two keys have. */
export async function readConfigKeys({ keys = [] }: AccessConfig, env: Env): Promise<ConfigKeys> {
  const found = new Map<string, Principal>()
  const names = new Set<string>()
  for (const [i, { name, env: variable, role = 'user', tenant, agents, expires }] of keys.entries()) {
    const place = `server.access.keys[${i}]`
    const secret = ownValue(env, variable)
    if (secret === undefined || secret === '') {
      const set = Object.keys(env).filter((each) => ownValue(env, each) !== undefined)
      throw badConfig(`${place}.env: the variable ${variable} is not set${didYouMean(variable, set)}`)
    }
    if (secret.length < shortestKey) {
      throw badConfig(`${place}.env: the key in ${variable} must have at least ${shortestKey} characters`)
    }
    if (names.has(name)) throw badConfig(`${place}.name: there is another key "${name}"`)
    const digest = await digestOf(secret)
    if (found.has(digest)) throw badConfig(`${place}.env: another key has the same secret as ${variable}`)
    const expiresAt = expires === undefined ? undefined : endOf(expires)
    if (expires !== undefined && expiresAt === undefined) throw badConfig(`${place}.expires: write ${endWords}`)
    names.add(name)
    found.set(digest, principalOf({ name, role, createdAt: 0, ...omitUndefined({ tenant, agents, expiresAt }) }))
  }
  return {
    names,
    find(digest, now) {
      const principal = found.get(digest)
      return principal !== undefined && (principal.expiresAt ?? Infinity) > now ? principal : undefined
    },
  }
}

export function badConfig(message: string): MillraceError {
  return new MillraceError('bad-config', `${message}.`)
}
