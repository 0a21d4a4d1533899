/** The engine for a program of one's own: agents as YAML texts, everything else with a default. Web APIs only. */
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import { parsePipeline } from '../pipeline/parse.ts'
import { memoryStore } from '../record/memory-store.ts'
import { createRuntime as createEngine, type Agent, type AgentSource, type Runtime } from '../run/runtime.ts'
import type { Config } from './config.ts'
import { allowedEnv, createRegistry, knownNames, secretValues, type Env } from './registry.ts'

export interface CreateRuntimeOptions extends Config {
  /** Agent id → YAML text. Faults throw at once, all of them. */
  agents: Record<string, string>
  /** Default: in memory, the last 100 runs; client tools are then handed over, not waited for. */
  store?: Store
  /** Where keys come from. Default: `process.env` where there is one. */
  environment?: Env
}

export function createRuntime(options: CreateRuntimeOptions): Runtime {
  const { agents, store = memoryStore(), environment = globalThis.process?.env ?? {}, ...config } = options
  const registry = createRegistry(config, environment)
  const known = knownNames(registry)
  const list = Object.entries(agents).map(([id, text]) => ({ id, pipeline: parsePipeline(text, known) }))
  return createEngine({
    agents: agentSource(list),
    registry,
    store,
    env: allowedEnv(config, environment),
    secrets: secretValues(config, environment),
    ...(config.requestDeadlineMs === undefined ? undefined : { requestDeadlineMs: config.requestDeadlineMs }),
  })
}

/** Agents by id and by alias; a name that two agents claim is refused. */
export function agentSource(agents: readonly Agent[]): AgentSource {
  const byName = new Map<string, Agent>()
  for (const agent of agents) {
    for (const name of [agent.id, ...(agent.pipeline.metadata.aliases ?? [])]) {
      const other = byName.get(name)
      if (other !== undefined && other !== agent) {
        throw new MillraceError('duplicate-agent', `Two agents answer to "${name}": ${other.id} and ${agent.id}.`)
      }
      byName.set(name, agent)
    }
  }
  return { get: (id) => byName.get(id), list: () => [...agents] }
}
