/** A folder of agents with its config, its store and its runtime: what `serve` and `run` both stand on. Node only. */
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import { memoryStore } from '../record/memory-store.ts'
import { sqliteStore } from '../record/sqlite-store.ts'
import type { Config } from '../library/config.ts'
import { unpack } from '../library/packs.ts'
import { allowedEnv, createRegistry, knownNames, secretValues, type Env } from '../library/registry.ts'
import type { Endpoint } from '../run/models/resolver.ts'
import type { EndpointProtocol } from '../run/models/providers.ts'
import { createRuntime, type Runtime } from '../run/runtime.ts'
import { openAgentFolder, type AgentFolder } from './agents-folder.ts'
import { loadConfig } from './load-config.ts'

export interface Project {
  runtime: Runtime
  agents: AgentFolder
  config: Config
}

export interface ProjectOptions {
  dir: string
  /** Folder for `millrace.db`; `none` keeps everything in memory. */
  data: string
  env: Env
  endpoints?: readonly Endpoint[]
  /** Further values that must never be recorded. */
  secrets?: readonly string[]
}

export async function openProject({ dir, data, env, endpoints = [], secrets = [] }: ProjectOptions): Promise<Project> {
  const config = await loadConfig(dir)
  const store = openStore(data)
  try {
    const registry = createRegistry(config, env, { endpoints: [...endpointsOf(env), ...endpoints], log: store.log })
    const agents = openAgentFolder(dir, knownNames(registry), unpack(config).agents)
    const runtime = createRuntime({
      agents,
      registry,
      store,
      env: allowedEnv(config, env),
      secrets: [...new Set([...secretValues(config, env), ...secrets])],
      ...(config.requestDeadlineMs === undefined ? undefined : { requestDeadlineMs: config.requestDeadlineMs }),
    })
    return { runtime, agents, config }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** The agents of a folder as `serve` would load them, for a look at what is wrong with them. Starts and keeps nothing. */
export async function readAgents(dir: string, env: Env, endpoints: readonly Endpoint[] = []): Promise<AgentFolder> {
  const config = await loadConfig(dir)
  const registry = createRegistry(config, env, {
    endpoints: [...endpointsOf(env), ...endpoints],
    log: memoryStore().log,
  })
  return openAgentFolder(dir, knownNames(registry), unpack(config).agents)
}

export function openStore(data: string): Store {
  if (data === 'none') return memoryStore()
  // What people said is in it: other accounts of the machine are kept out.
  mkdirSync(resolve(data), { recursive: true, mode: 0o700 })
  return sqliteStore(join(resolve(data), 'millrace.db'))
}

const protocols: ReadonlySet<string> = new Set<EndpointProtocol>([
  'openai-chat',
  'openai-responses',
  'anthropic',
  'google',
])

/** `name=[protocol+]url`, as on the command line. */
export function parseEndpoint(text: string): Endpoint {
  const match = /^([\w-]+)=(?:([\w-]+)\+)?(https?:\/\/\S+)$/u.exec(text)
  const [, name, protocol, baseURL] = match ?? []
  if (name === undefined || baseURL === undefined || (protocol !== undefined && !protocols.has(protocol))) {
    const form = `name=[protocol+]url, for example ollama=http://localhost:11434/v1`
    throw new MillraceError(
      'bad-endpoint',
      `"${text}" is no endpoint: write ${form}; protocols: ${[...protocols].join(', ')}.`,
    )
  }
  return { name, baseURL, ...(protocol === undefined ? undefined : { protocol: protocol as EndpointProtocol }) }
}

/** `MILLRACE_ENDPOINT_<NAME>=[protocol+]url`. */
function endpointsOf(env: Env): Endpoint[] {
  return Object.entries(env).flatMap(([variable, value]) => {
    const name = /^MILLRACE_ENDPOINT_(\w+)$/u.exec(variable)?.[1]
    return name === undefined || !value ? [] : [parseEndpoint(`${name.toLowerCase().replaceAll('_', '-')}=${value}`)]
  })
}
