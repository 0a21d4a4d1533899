/** The shared part of all cases of one folder of agents, and a runtime for one case. */
import { resolve } from 'node:path'
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import type { Attribute } from '../engine/step-name.ts'
import type { Registry } from '../engine/registry.ts'
import type { Endpoint } from '../models/resolver.ts'
import type { Known, Pipeline } from '../pipeline/pipeline.ts'
import { openAgentFolder, type AgentFolder } from '../project/agents-folder.ts'
import type { Config } from '../project/config.ts'
import { loadConfig } from '../project/load-config.ts'
import { unpack } from '../project/packs.ts'
import { withEndpoints } from '../project/project.ts'
import { allowedEnv, createRegistry, knownNames, type Env } from '../project/registry.ts'
import { findSecrets, secretValues } from '../project/secrets.ts'
import { createRuntime } from '../runtime/create-runtime.ts'
import type { Runtime, Agent, AgentSource } from '../runtime/runtime.ts'
import { memoryStore } from '../store/memory-store.ts'
import { recordedRegistry, type Player } from './recorded-registry.ts'
import { child } from '../pipeline/check.ts'
import { createFaultCollector } from '../pipeline/fault.ts'
import { parsePipeline } from '../pipeline/parse.ts'
import { walkSteps } from '../pipeline/step-types.ts'
import { parseTree, type Node } from '../pipeline/tree.ts'

export interface TestRuntimeOptions {
  /** Folder of agents. */
  dir: string
  /** Folder that `dir` and the paths of files are relative to. Default: that of the process. */
  cwd?: string | undefined
  env: Env
  /** More values that must never be recorded. */
  secrets?: readonly string[] | undefined
  endpoints?: readonly Endpoint[] | undefined
  /** The folder's config, if already loaded. */
  config?: Config | undefined
  attribute?: Attribute | undefined
  /** Called with each runtime; returns a function for its close. */
  onRuntime?: ((runtime: Runtime) => () => void) | undefined
}

export interface TestRuntime {
  agents: AgentFolder
  known: Known
  config: Config
  options: TestRuntimeOptions
}

/** Throws the errors of the config. Errors of agents are in `agents.errors`. */
export async function openTestRuntime(options: TestRuntimeOptions): Promise<TestRuntime> {
  const { env, endpoints } = options
  const dir = resolve(options.cwd ?? '', options.dir)
  const config = withEndpoints(options.config ?? (await loadConfig(dir)), env, endpoints)
  const registry = createRegistry(config, env, { log: memoryStore().log })
  const known = knownNames(registry, config, findSecrets(config, env))
  return { agents: openAgentFolder(dir, known, unpack(config).agents), known, config, options }
}

export interface Bench {
  runtime: Runtime
  store: Store
  /** Undefined while recording: the real models answer. */
  player?: Player
  close(): Promise<void>
}

export interface BenchOptions {
  /** Whether models are answered from recordings. */
  plays: boolean
  /** Whether the real tools run. */
  live: boolean
  /** Instead of the models that the agents name. */
  model?: string | undefined
  /** Agents that keep their own models. */
  judges: ReadonlySet<string>
}

/** A runtime with a store of its own, in memory: cases do not see each other. */
export function openBench(
  { agents, known, config, options }: TestRuntime,
  { plays, live, model, judges }: BenchOptions,
): Bench {
  const { env, secrets = [], attribute, onRuntime } = options
  // A run may wait for the answers of its case.
  const store: Store = { ...memoryStore(), durable: true }
  const real = createRegistry(config, env, { log: store.log })
  const { registry, player } = plays ? recordedRegistry(real, { live }) : { registry: real, player: undefined }
  const runtime = createRuntime(
    omitUndefined({
      agents: model === undefined ? agents : agentsWithModel(agents, model, known, judges),
      registry: model === undefined ? registry : withDefault(registry, model),
      store,
      env: allowedEnv(config, env),
      secrets: [...secretValues(config, env), ...secrets],
      secretKeys: config.secrets?.keys,
      defaultTimeouts: config.timeouts,
      attribute,
    }),
  )
  const closed = onRuntime?.(runtime)
  return omitUndefined({
    runtime,
    store,
    player,
    async close() {
      await runtime.close(0)
      closed?.()
    },
  })
}

function withDefault(registry: Registry, model: string): Registry {
  const { models } = registry
  return { ...registry, models: { ...models, defaultModel: model } }
}

/** Throws for an agent that does not exist or has errors. */
export function checkAgentOf({ agents, options: { dir } }: TestRuntime, id: string, path: string): void {
  if (agents.get(id) !== undefined) return
  const broken = agents.errors.find(({ file }) => file.replace(/\.ya?ml$/u, '') === id)
  if (broken !== undefined)
    throw new MillraceError('bad-pipeline', `The agent of ${path} has errors:\n${dir}/${broken.message}`)
  const known =
    agents
      .list()
      .map((agent) => agent.id)
      .join(', ') || 'none'
  throw new MillraceError('unknown-agent', `${path}: there is no agent "${id}" in ${dir}. Known: ${known}.`)
}

/* An agent with another model: the same text, with this name as the model of each step that calls one. */

/** Steps without a model use the default model, which the caller replaces. */
function withModel(pipeline: Pipeline, model: string, known: Known): Pipeline {
  const { text } = pipeline
  const root = parseTree(text, createFaultCollector(text))
  const lists = ['workflow', 'after'].flatMap((key) => child(root, key) ?? [])
  const places: { at: number; end: number }[] = []
  for (const list of lists) {
    for (const { step } of walkSteps([{ list, owner: '' }])) {
      const type = child(step, 'type')
      const name = child(child(step, 'config'), 'model')
      if (type?.kind === 'scalar' && hasModel.has(type.text) && name?.kind === 'scalar') places.push(placeOf(name))
    }
  }
  let changed = text
  // From the end, so that the offsets before stay right. A step behind an alias is at the place of its anchor.
  const distinct = [...new Map(places.map((place) => [place.at, place])).values()]
  for (const { at, end } of distinct.toSorted((a, b) => b.at - a.at)) {
    changed = changed.slice(0, at) + JSON.stringify(model) + changed.slice(end)
  }
  return changed === text ? pipeline : parsePipeline(changed, known)
}

const hasModel: ReadonlySet<string> = new Set(['llm', 'router'])

function placeOf({ at, end }: Extract<Node, { kind: 'scalar' }>): { at: number; end: number } {
  return { at, end }
}

/** All agents with this model, except the one that judges. */
function agentsWithModel(agents: AgentSource, model: string, known: Known, judge: ReadonlySet<string>): AgentSource {
  const changed = new Map<Agent, Agent>()
  const change = (agent: Agent): Agent => {
    if (judge.has(agent.id)) return agent
    let found = changed.get(agent)
    if (found === undefined) {
      found = { ...agent, pipeline: withModel(agent.pipeline, model, known) }
      changed.set(agent, found)
    }
    return found
  }
  return {
    get(id) {
      const agent = agents.get(id)
      return agent && change(agent)
    },
    list: () => agents.list().map(change),
  }
}
