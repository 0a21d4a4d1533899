/** An agents folder with its config, store and runtime, as `serve` and `run` use it. Node only. */
import * as fs from 'node:fs'
import { join, resolve } from 'node:path'
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError, wholeMessage } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import { memoryStore } from '../store/memory-store.ts'
import { watchStore } from '../store/watch-store.ts'
import { didYouMean } from '../pipeline/nearest.ts'
import { endpointProtocols } from './check-config.ts'
import type { Config } from './config.ts'
import { archiveOf, openStore } from './open-store.ts'
import { unpack } from './packs.ts'
import { allowedEnv, createRegistry, knownNames, type Env } from './registry.ts'
import { findSecrets, secretValues } from './secrets.ts'
import type { Attribute } from '../engine/step-name.ts'
import type { OpenAccount } from '../engine/run-account.ts'
import type { RunEvent } from '../runtime/runtime-options.ts'
import type { ModelResolver } from '../models/language-model.ts'
import type { McpServer } from '../tools/mcp/server.ts'
import type { Endpoint } from '../models/resolver.ts'
import { createRuntime } from '../runtime/create-runtime.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { openAgentFolder, type AgentFolder } from './agents-folder.ts'
import { loadConfig } from './load-config.ts'
import { createSkillFiles } from './skill-files.ts'
import { otlpSecrets, otlpSettingsOf, type OtlpSettings } from '../record/otlp/settings.ts'
import { withRunFiles } from '../record/run-files.ts'
import { createLogFiles, type LogFiles } from '../record/log-files.ts'

export interface Project {
  runtime: Runtime
  agents: AgentFolder
  config: Config
  /** Undefined without `logFiles`. */
  files?: LogFiles | undefined
  /** Why runs cannot be stored; undefined while the store works. */
  readonly storeFailure: MillraceError | undefined
}

export interface ProjectOptions {
  dir: string
  /** The folder's config, if already loaded. */
  config?: Config
  /** Folder for the log, logs of CLI agents and records of their processes; `none` keeps the log in memory, and nothing else. */
  data: string
  /** URL of a shared store, which then has the runs instead. */
  store?: string | undefined
  /** Also write runs as files to `<data>/runs`. Ignored when `data` is `none`. */
  logFiles?: boolean
  /** Folder that relative paths are relative to. Default: that of the process. */
  cwd?: string
  env: Env
  /** Endpoints from the command line. They override those of the environment, which override those of the config. */
  endpoints?: readonly Endpoint[]
  /** A database of an older version is refused, not migrated. */
  keepsVersion?: boolean
  /** More values that must never be recorded. */
  secrets?: readonly string[]
  /** Called with problems outside of runs. */
  log?: (line: string) => void
  /** Called with details for debugging: which decoder reads a model's streams. */
  debug?: (line: string) => void
  /** Called when the store starts to fail, and with undefined when it works again. */
  onStore?: (failure: MillraceError | undefined) => void
  onRun?: (event: RunEvent) => void
  attribute?: Attribute
  /** Makes the quotas of users. Called once, with the open store. */
  openAccount?: (store: Store, config: Config) => OpenAccount | undefined
}

export async function openProject(options: ProjectOptions): Promise<Project> {
  const { dir, data, env, endpoints, secrets = [], log = () => undefined } = options
  const config = withEndpoints(options.config ?? (await loadConfig(dir)), env, endpoints)
  const otlp = otlpSettingsOf(config.telemetry?.otlp, env)
  if (options.logFiles === true && options.store !== undefined) {
    const cure = 'Use record.archive, which has a file for each run that has ended, or millrace export.'
    const message = `Log files cannot be written with a shared store: a run may move between instances. ${cure}`
    throw new MillraceError('usage', message)
  }
  const { busyTimeoutMs } = config.record ?? {}
  const archive = archiveOf(config.record ?? {}, env)
  const { keepsVersion = false } = options
  const inner = await openStore({ store: options.store, data, busyTimeoutMs, archive, keepsVersion, warn: log })
  const watched = watchStore(inner, { onChange: options.onStore ?? (() => undefined) })
  const opened = watched.store
  const wanted = options.logFiles === true && data !== 'none'
  const folder = join(resolve(data), 'runs')
  const files = wanted ? createLogFiles(opened, folder, log) : undefined
  const written = files?.store ?? opened
  const lastGood =
    written.upkeep && data !== 'none' ? { ...written, upkeep: withRunFiles(written.upkeep, folder) } : written
  const store = otlp === undefined ? lastGood : await withTraces(lastGood, otlp, { data, log })
  try {
    const made = {
      log: store.log,
      debug: options.debug,
      data: data === 'none' ? undefined : resolve(data),
      cwd: options.cwd,
    }
    const registry = {
      ...createRegistry(config, env, omitUndefined(made)),
      traces: otlp !== undefined,
      skills: createSkillFiles(fs, dir),
    }
    const agents = openAgentFolder(dir, knownNames(registry, config, findSecrets(config, env)), unpack(config).agents)
    const { requestDeadlineMs, closeThreadsAfterMs, timeouts, server } = config
    const runtime = createRuntime({
      agents,
      registry,
      store,
      env: allowedEnv(config, env),
      secrets: [...new Set([...secretValues(config, env), ...secrets, ...otlpSecrets(otlp)])],
      secretKeys: config.secrets?.keys,
      requestDeadlineMs,
      closeThreadsAfterMs,
      defaultTimeouts: timeouts,
      graceMs: server?.stopGraceMs,
      onRun: options.onRun,
      warn: log,
      attribute: options.attribute,
      openAccount: options.openAccount?.(store, config),
    })
    return {
      runtime,
      agents,
      config,
      files,
      get storeFailure() {
        return watched.failure
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Sends the spans of the runs to a collector. Loaded only if there is one. */
async function withTraces(
  store: Store,
  settings: OtlpSettings,
  { data, log }: Required<Pick<ProjectOptions, 'data' | 'log'>>,
): Promise<Store> {
  const { exportSpans } = await import('../record/otlp/exporter.ts')
  return exportSpans(store, { settings, log, file: data === 'none' ? undefined : join(resolve(data), 'otlp.json') })
}

/** Loads the agents of a folder as `serve` does, to check them. Starts no runs and opens no store. */
export async function readAgents(
  dir: string,
  env: Env,
  endpoints?: readonly Endpoint[],
): Promise<{ agents: AgentFolder; models: ModelResolver }> {
  const config = withEndpoints(await loadConfig(dir), env, endpoints)
  const registry = createRegistry(config, env, { log: memoryStore().log })
  const known = knownNames(registry, config, findSecrets(config, env))
  return { agents: openAgentFolder(dir, known, unpack(config).agents), models: registry.models }
}

/** The faults of the MCP servers in a folder's config that are programs, and of their tools. Starts each server, and stops it. */
export async function readMcpFaults(dir: string, env: Env): Promise<{ faults: string[]; warnings: string[] }> {
  const faults: string[] = []
  const warnings: string[] = []
  const { mcp } = createRegistry(await loadConfig(dir), env, { log: memoryStore().log })
  if (mcp === undefined) return { faults, warnings }
  const { readMcpTools } = await import('../tools/mcp/mcp-tool.ts')
  const { missingEnv } = await import('../tools/mcp/child-env.ts')
  const check = async (name: string, server: McpServer) => {
    if (!('command' in server)) return
    try {
      await readMcpTools(mcp, name, undefined, ({ message, isOneOfMany }) => {
        if (isOneOfMany !== true) warnings.push(message)
      })
    } catch (error) {
      // The machine that checks need not have the keys of the one that serves.
      const list = missingEnv(server.env).length > 0 ? warnings : faults
      list.push(wholeMessage(error))
    }
  }
  try {
    await Promise.all([...mcp.servers].map(([name, server]) => check(name, server)))
  } finally {
    await mcp.close()
  }
  return { faults, warnings }
}

/** `name=[protocol+]url`, as on the command line. */
export function parseEndpoint(text: string): Endpoint {
  const match = /^([\w-]+)=(?:([\w-]+)\+)?(https?:\/\/\S+)$/u.exec(text)
  const [, name, protocol, baseURL] = match ?? []
  const known = endpointProtocols.find((each) => each === protocol)
  if (name === undefined || baseURL === undefined || (protocol !== undefined && known === undefined)) {
    const form = `name=[protocol+]url, for example ollama=http://localhost:11434/v1`
    const list = `protocols: ${endpointProtocols.join(', ')}${didYouMean(protocol ?? '', endpointProtocols)}`
    throw new MillraceError('bad-endpoint', `"${text}" is not a valid endpoint: write ${form}; ${list}.`)
  }
  return omitUndefined({ name, baseURL, protocol: known })
}

/** `MILLRACE_ENDPOINT_<NAME>=[protocol+]url`. */
function endpointsOf(env: Env): Endpoint[] {
  return Object.entries(env).flatMap(([variable, value]) => {
    const name = /^MILLRACE_ENDPOINT_(\w+)$/u.exec(variable)?.[1]
    return name === undefined || !value?.trim()
      ? []
      : [parseEndpoint(`${name.toLowerCase().replaceAll('_', '-')}=${value.trim()}`)]
  })
}

/** Command line before environment before config. Duplicates within one source stay, for the registry to refuse. */
export function withEndpoints(config: Config, env: Env, given: readonly Endpoint[] = []): Config {
  const endpoints = [given, endpointsOf(env), config.models?.endpoints ?? []].reduceRight((below, above) => [
    ...below.filter(({ name }) => !above.some((each) => each.name === name)),
    ...above,
  ])
  return { ...config, models: { ...config.models, endpoints: [...endpoints] } }
}
