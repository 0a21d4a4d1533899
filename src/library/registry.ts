/** A config and an environment → what the engine is given: maps, never objects with a prototype. */
import type { Log } from '../part/log.ts'
import { builtinSteps } from '../pipeline/names.ts'
import type { Known } from '../pipeline/pipeline.ts'
import { createMcpPool } from '../run/mcp/pool.ts'
import { createModelResolver } from '../run/models/resolver.ts'
import type { Registry } from '../run/ports.ts'
import { builtinTools } from '../run/tools/builtin-tools.ts'
import type { Config } from './config.ts'
import { unpack } from './packs.ts'

export type Env = Readonly<Record<string, string | undefined>>

export interface RegistryOptions {
  /** Where `recording:<run>` finds its runs. */
  log?: Log
}

/** Throws `bad-config` and `invalid-endpoint`. */
export function createRegistry(config: Config, env: Env, { log }: RegistryOptions = {}): Registry {
  const { models = {}, mcpServers, pricing, tools, callbacks, steps } = unpack(config)
  return {
    ...(mcpServers === undefined ? undefined : { mcp: createMcpPool(mcpServers) }),
    ...(pricing === undefined ? undefined : { pricing: new Map(Object.entries(pricing)) }),
    tools: new Map([...builtinTools, ...Object.entries(tools)]),
    callbacks: new Map(Object.entries(callbacks)),
    steps: new Map(Object.entries(steps)),
    models: createModelResolver({
      env,
      ...(models.endpoints === undefined ? undefined : { endpoints: models.endpoints }),
      ...(log === undefined ? undefined : { log }),
      ...(models.providers === undefined ? undefined : { providers: new Map(Object.entries(models.providers)) }),
      ...(models.default === undefined ? undefined : { defaultModel: models.default }),
    }),
  }
}

/** The names a pipeline may use. Agents are not among them: `checkCalls` looks at calls once all agents are there. */
export function knownNames({ tools, callbacks, steps, models, mcp }: Registry): Known {
  return {
    stepTypes: [...builtinSteps, ...steps.keys()],
    tools: [...tools.keys()],
    callbacks: [...callbacks.keys()],
    providers: models.providers,
    mcpServers: mcp?.names ?? [],
  }
}

/** What `$env` may see: only the names the config allows. */
export function allowedEnv(config: Config, env: Env): Record<string, string> {
  return Object.fromEntries((config.env ?? []).flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
}

const secretName = /(?:KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)?|PWD|PAT|CREDENTIALS?|AUTH|COOKIE|DSN)(?:_|\d|$)/iu

/**
 * Values that must never be recorded or sent: what the environment keeps under a name that says so or that an endpoint
 * names, the password of any URL in it, and what MCP servers are given as headers and environment.
 */
export function secretValues(config: Config, env: Env): string[] {
  const { models, mcpServers = {} } = config
  const named = new Set(models?.endpoints?.map(({ apiKeyEnv }) => apiKeyEnv))
  const found = Object.entries(env).flatMap(([name, value = '']) => [
    ...(secretName.test(name) || named.has(name) ? [value] : []),
    ...passwordOf(value),
  ])
  for (const server of Object.values(mcpServers) as { headers?: object; env?: object }[]) {
    for (const value of Object.values({ ...server.headers, ...server.env })) {
      if (typeof value === 'string') found.push(value, value.replace(/^\s*(?:Bearer|Basic)\s+/iu, ''))
    }
  }
  for (const { baseURL } of models?.endpoints ?? []) {
    found.push(...passwordOf(baseURL))
    if (URL.canParse(baseURL)) {
      for (const [name, value] of new URL(baseURL).searchParams) if (secretName.test(name)) found.push(value)
    }
  }
  return [...new Set(found.map((value) => value.trim()))].filter((value) => value.length >= 6)
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
