/** What must never be recorded, sent or printed: found in the environment and the config, by names that say so. */
import type { Secret } from '../pipeline/pipeline.ts'
import type { Config } from './config.ts'
import type { Env } from './registry.ts'

// PWD and OLDPWD are every shell's folders.
const secretName =
  /(?:KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)?|(?<!^(?:OLD)?)PWD|PAT|CREDENTIALS?|AUTH|COOKIE|DSN)(?:_|\d|$)/iu

/** Characters. A shorter value is a word rather than a secret. */
const shortest = 6

/**
 * What the environment keeps under a name that says so or that an endpoint names, the password of any URL in it, and what MCP
 * servers are given as headers and environment.
 */
export function findSecrets(config: Config, env: Env): Secret[] {
  const { models, mcpServers = {} } = config
  const named = new Set(models?.endpoints?.map(({ apiKeyEnv }) => apiKeyEnv))
  const found: Secret[] = []
  const add = (from: string, cure: string, values: readonly string[]) => {
    for (const value of values) found.push({ value: value.trim(), from, cure })
  }
  for (const [name, value = ''] of Object.entries(env)) {
    const values = [...(secretName.test(name) || named.has(name) ? [value] : []), ...passwordOf(value)]
    add(`the environment variable ${name}`, `write $env.${name}, with "${name}" under "env" in the config`, values)
  }
  const cure = 'leave it there, or write $env.NAME and keep it in that variable of the environment'
  for (const [name, server] of Object.entries(mcpServers) as [string, { headers?: object; env?: object }][]) {
    // A list holds names of variables, not values.
    const env = Array.isArray(server.env) ? {} : server.env
    const values = Object.values({ ...server.headers, ...env }).filter((value) => typeof value === 'string')
    const bare = values.map((value) => value.replace(/^\s*(?:Bearer|Basic)\s+/iu, ''))
    add(`mcpServers.${name} in the config`, cure, [...values, ...bare])
  }
  for (const { name, baseURL } of models?.endpoints ?? []) {
    const query = URL.canParse(baseURL) ? [...new URL(baseURL).searchParams] : []
    const values = query.flatMap(([key, value]) => (secretName.test(key) ? [value] : []))
    add(`the endpoint "${name}" in the config`, cure, [...passwordOf(baseURL), ...values])
  }
  return found.filter(({ value }) => value.length >= shortest)
}

/** The values alone, each once. */
export function secretValues(config: Config, env: Env): string[] {
  return [...new Set(findSecrets(config, env).map(({ value }) => value))]
}

/** As it is written, and as it is meant. */
function passwordOf(value: string): string[] {
  const written = /^\s*[a-z][\w+.-]*:\/\/[^\s/:@]*:([^\s/@]+)@/iu.exec(value)?.[1]
  if (written === undefined) return []
  try {
    return [written, decodeURIComponent(written)]
  } catch {
    return [written]
  }
}
