/** The engine for your own program: pass agents as YAML; everything else has a default. Uses Web APIs only. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import { checkCalls } from '../pipeline/calls.ts'
import { faultsOf } from '../pipeline/fault.ts'
import { formatFaults, parsePipeline, PipelineError } from '../pipeline/parse.ts'
import type { Fault, Known, Pipeline } from '../pipeline/pipeline.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { OpenAccount } from '../engine/run-account.ts'
import { createRuntime as createEngine } from '../runtime/create-runtime.ts'
import type { Agent, AgentSource, Runtime } from '../runtime/runtime.ts'
import { findByName } from '../runtime/agent-names.ts'
import { checkConfig } from './check-config.ts'
import type { Config } from './config.ts'
import { unpack } from './packs.ts'
import { allowedEnv, createRegistry, knownNames, type Env } from './registry.ts'
import { findSecrets, secretValues } from './secrets.ts'

/** A config without `server` and `record`, plus the agents and the store: your program does the listening itself. */
export interface CreateRuntimeOptions extends Omit<Config, 'server' | 'record' | 'telemetry'> {
  /** Agent id → YAML text. `createRuntime` throws one error that lists every mistake. */
  agents: Record<string, string>
  /** Default: in memory, keeping the last 100 ended runs. A run then hands client tools over instead of waiting for their results. */
  store?: Store
  /** Environment variables, from which API keys are read. Default: those of the process, if it has any and may read them. */
  environment?: Env
  /** Folder in which CLI agents keep raw logs, and a server the records of its processes. Default: none. */
  data?: string
  /** Called with notices for the operator, for example that runs of another process cannot continue here. Default: nowhere. */
  warn?: (message: string) => void
  /** The quotas of whoever starts a run: `createQuotas(…).openAccount`. Default: none. */
  openAccount?: OpenAccount
  /** The store exports spans (`exportSpans`): steps hand on their own span to those they call. */
  traces?: boolean
}

/**
 * Creates an engine with these agents; starts nothing. Throws {@link PipelineError} with the mistakes of all agents
 * (including calls of unknown agents and endless calls), `duplicate-agent`, `bad-config` and `invalid-endpoint`.
 * Call `close()` when the program ends.
 */
export function createRuntime(options: CreateRuntimeOptions): Runtime {
  const {
    agents,
    store = memoryStore(),
    environment = processEnvironment(),
    data,
    traces,
    warn,
    openAccount,
    ...config
  } = options
  checkConfig(config)
  const unpacked = unpack(config)
  const registry = {
    ...createRegistry(unpacked, environment, omitUndefined({ log: store.log, data })),
    ...omitUndefined({ traces }),
  }
  return createEngine(
    omitUndefined({
      agents: agentSource(
        parseAgents({ ...unpacked.agents, ...agents }, knownNames(registry, config, findSecrets(config, environment))),
      ),
      registry,
      store,
      env: allowedEnv(config, environment),
      secrets: secretValues(config, environment),
      secretKeys: config.secrets?.keys,
      defaultTimeouts: config.timeouts,
      requestDeadlineMs: config.requestDeadlineMs,
      closeThreadsAfterMs: config.closeThreadsAfterMs,
      warn,
      openAccount,
    }),
  )
}

function parseAgents(texts: Record<string, string>, known: Known): Agent[] {
  const agents: Agent[] = []
  const faults: Fault[] = []
  const lines: string[] = []
  for (const [id, text] of Object.entries(texts)) {
    try {
      agents.push({ id, pipeline: parsePipeline(text, known) })
    } catch (error) {
      const found = faultsOf(error)
      faults.push(...found)
      lines.push(formatFaults(id, found))
    }
  }
  // Check calls only when all agents parse: an agent with mistakes would be reported as unknown.
  if (faults.length === 0) {
    for (const { agent, fault } of checkCalls(agentsByName(agents))) {
      faults.push(fault)
      lines.push(formatFaults(agent, [fault]))
    }
  }
  if (faults.length > 0) throw new PipelineError(faults, lines.join('\n'))
  return agents
}

/** Looks agents up by id and by alias. Throws `duplicate-agent` when two agents share a name. */
export function agentSource(agents: readonly Agent[]): AgentSource {
  const byName = new Map<string, Agent>()
  for (const agent of agents) {
    for (const name of [agent.id, ...(agent.pipeline.metadata.aliases ?? [])]) {
      const other = byName.get(name)
      if (other !== undefined && other !== agent) {
        throw new MillraceError(
          'duplicate-agent',
          `Two agents have the id or alias "${name}": ${other.id} and ${agent.id}. Rename one.`,
        )
      }
      byName.set(name, agent)
    }
  }
  return { get: (id) => findByName(byName, id), list: () => [...agents] }
}

function agentsByName(agents: readonly Agent[]): Map<string, Pipeline> {
  const names = new Map(agents.map(({ id, pipeline }) => [id, pipeline]))
  for (const { pipeline } of agents) {
    for (const alias of pipeline.metadata.aliases ?? []) if (!names.has(alias)) names.set(alias, pipeline)
  }
  return names
}

interface DenoPermissions {
  permissions: { querySync(what: { name: 'env' }): { state: string } }
}

/**
 * The environment of the process, where there is one. Deno without `--allow-env` has none: each reading of a variable would throw, or
 * stop to ask the terminal.
 */
export function processEnvironment(): Env {
  const { process, Deno } = globalThis as { process?: { env?: Env }; Deno?: DenoPermissions }
  if (Deno !== undefined && Deno.permissions.querySync({ name: 'env' }).state !== 'granted') return {}
  return process?.env ?? {}
}
