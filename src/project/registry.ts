/** Builds the engine's registry from a config and an environment. It uses maps, so no name reaches a prototype. */
import { omitUndefined } from '../part/omit-undefined.ts'
import type { Log } from '../part/log.ts'
import type { Secret } from '../pipeline/inlined.ts'
import type { Known } from '../pipeline/pipeline.ts'
import { createNodeProcesses } from '../processes/node-processes.ts'
import { checkScript } from '../script/compile.ts'
import { createSandboxPool } from '../script/pool.ts'
import { createMcpPool } from '../tools/mcp/pool.ts'
import { createModelResolver } from '../models/resolver.ts'
import { namesOf, type Registry } from '../engine/registry.ts'
import { defaultReadLimits } from '../models/limits/read-limits.ts'
import { ownHandlers } from '../engine/steps/builtin-handlers.ts'
import { builtinTools } from '../tools/builtin-tools.ts'
import type { Config } from './config.ts'
import { unpack } from './packs.ts'
import { secretValues } from './secrets.ts'
import { ownValue } from '../part/own-value.ts'

export type Env = Readonly<Record<string, string | undefined>>

export interface RegistryOptions {
  /** The log from which `recording:<run>` reads. */
  log?: Log
  debug?: (line: string) => void
  /** The data folder, for records of child processes. */
  data?: string
  /** Folder that the folders of child processes are relative to. Default: that of this process. */
  cwd?: string
}

/** One for the process: it starts its workers with the first script, and none keeps the process alive. */
const sandbox = createSandboxPool()

const hasNode = typeof globalThis.process?.getBuiltinModule === 'function'

/** Throws `bad-config` and `invalid-endpoint`. */
export function createRegistry(config: Config, env: Env, { log, debug, data, cwd }: RegistryOptions = {}): Registry {
  const { models = {}, mcpServers, pricing, tools, callbacks, steps, limits = {} } = unpack(config)
  const { answerChars, toolCalls, ...given } = limits
  const reading = { ...defaultReadLimits, ...given }
  return omitUndefined({
    mcp:
      mcpServers &&
      createMcpPool(mcpServers, { secrets: secretValues(config, env), limits: reading, environment: env }),
    // At the edge there are no processes to start.
    processes: hasNode ? createNodeProcesses(omitUndefined({ environment: env, data, cwd })) : undefined,
    sandbox: hasNode ? sandbox : undefined,
    pricing: pricing && new Map(Object.entries(pricing)),
    answerChars,
    toolCalls,
    tools: new Map([...builtinTools, ...Object.entries(tools)]),
    callbacks: new Map(Object.entries(callbacks)),
    steps: ownHandlers(steps),
    models: createModelResolver(
      omitUndefined({
        env,
        limits: reading,
        endpoints: models.endpoints,
        log,
        providers: models.providers && new Map(Object.entries(models.providers)),
        defaultModel: models.default,
        cache: models.cache,
        windows: models.windows && new Map(Object.entries(models.windows)),
        decoder: models.decoder,
        debug,
      }),
    ),
  })
}

/**
 * The names that a pipeline may use, and the secrets that its text must not contain. Agents are not included: `checkCalls`
 * checks calls once all agents are loaded.
 */
export function knownNames(registry: Registry, { env = [], server }: Config, secrets: readonly Secret[]): Known {
  // An application that starts runs itself may give others.
  const claims = server?.access && (server.access.claims ?? [])
  const names = { ...namesOf(registry), env, secrets, ...(claims !== undefined && { claims }) }
  return hasNode ? { ...names, checkScript: checkCode } : names
}

/** The place of the first mistake in a script. */
function checkCode(code: string): ReturnType<NonNullable<Known['checkScript']>> {
  const fault = checkScript(code)
  return fault && { line: fault.line ?? 1, column: fault.column ?? 1, message: fault.message }
}

/** The variables that `$env` may read: only those that the config allows. */
export function allowedEnv(config: Config, env: Env): Record<string, string> {
  const names = config.env ?? []
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = ownValue(env, name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}
