/** What is wrong with `server.access` that only a start can see: agents that do not exist, and doors that stand open. */
import { MillraceError } from '../../part/error.ts'
import type { QuotasConfig } from '../../part/quota.ts'
import { didYouMean, listNames } from '../../pipeline/nearest.ts'
import type { AccessConfig } from '../../project/config.ts'
import { badConfig } from './config-keys.ts'

/**
 * Throws `no-key` for an address that others reach, without a key, without `server.access`, and without the user's word that anybody may use it.
 * Throws `bad-config` if everybody who reaches it could start runs without a limit.
 */
export function checkBind(
  host: string,
  { isLocal, apiKey, access, quotas, insecureNoAuth = false }: BindOptions,
): void {
  if (isLocal) return
  if (apiKey === undefined && access === undefined && !insecureNoAuth) {
    const cure =
      'Set MILLRACE_API_KEY, or server.access in the config, or pass --insecure-no-auth if anyone may use it.'
    throw new MillraceError(
      'no-key',
      `Refusing to listen on ${host} without a key: anyone who reaches it could run agents. ${cure}`,
    )
  }
  // Whoever drops the cookie is a new user, whom perUser does not limit.
  if (access?.anonymous === 'user' && Object.keys(quotas?.perTenant ?? {}).length === 0) {
    const cure = 'Set server.quotas.perTenant, or listen on 127.0.0.1'
    throw badConfig(`server.access.anonymous: on ${host}, anyone could use up your models without a limit. ${cure}`)
  }
}

export interface BindOptions {
  /** Only this machine reaches the host. */
  isLocal: boolean
  apiKey: string | undefined
  access: AccessConfig | undefined
  /** `server.quotas`. */
  quotas: QuotasConfig | undefined
  insecureNoAuth?: boolean | undefined
}

/** Throws `bad-config` for a key of agents that do not exist. `agents`: their ids; an alias does not count. */
export function checkKeyAgents({ keys = [] }: AccessConfig, agents: Iterable<string>): void {
  const known = [...agents]
  const faults = keys.flatMap(({ agents: named = [] }, i) =>
    named
      .filter((each) => !known.includes(each))
      .map((each) => `server.access.keys[${i}].agents: ${unknownAgent(each, known)}`),
  )
  if (faults.length > 0) throw badConfig(faults.join('\n'))
}

export function unknownAgent(name: string, known: readonly string[]): string {
  const others = known.length === 0 ? '' : `, only ${listNames(known)}`
  return `there is no agent "${name.slice(0, 100)}"${didYouMean(name, known)}${others}`
}
