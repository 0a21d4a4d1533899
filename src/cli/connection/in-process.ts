/** Runs agents in this process, through the server's request handler but without a socket. */
import { join } from 'node:path'
import { MillraceClient } from '../../client/client.ts'
import type { Endpoint } from '../../models/resolver.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { withoutCredentials, wordsOf } from '../../part/error.ts'
import { MillraceError } from '../../part/error.ts'
import type { Store } from '../../part/log.ts'
import { formatFaults } from '../../pipeline/parse.ts'
import type { Config } from '../../project/config.ts'
import { openProject, readAgents } from '../../project/project.ts'
import { createRegistry } from '../../project/registry.ts'
import { secretValues } from '../../project/secrets.ts'
import { unknownAgent } from '../../runtime/runtime-errors.ts'
import { createRuntime } from '../../runtime/create-runtime.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { isHeld, lockData } from '../../server/data-lock.ts'
import type { HandlerOptions } from '../../server/handler-context.ts'
import { createHandler } from '../../server/handler.ts'
import { watchAgents } from '../../server/serve-report.ts'
import { mcpSettingsOf } from '../../server/settings.ts'
import { faultyAgent, type NamedAgent, initCure } from '../paths.ts'
import type { AgentConnection, AgentList } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import { guardProcess } from '../process-events.ts'
import { printable } from '../terminal/output.ts'
import { errorOf, requestConnection, type ServerRequest } from './server.ts'
import { openShared } from './shared-store.ts'

export interface LocalOptions {
  dir: string
  config: Config
  /** Data folder, or `none`. */
  data: string
  /** A shared store, which has the runs instead. */
  store: string | undefined
  logFiles: boolean
  endpoints: Endpoint[]
  flags: string
  notice?: string
  /** A database of an older version is refused, not migrated. */
  keepsVersion: boolean
  /** Print details for finding a fault to stderr. */
  debug: boolean
  /** See `AgentFlags`. */
  isServing: boolean
}

/** Higher than a server's limit: `run-input.ts` limits attached files. */
const maxBodyBytes = 64 * 1024 * 1024

/** Undefined if a server has locked the data folder. */
export async function openLocal(
  context: CommandContext,
  { flags, notice, debug, isServing, ...options }: LocalOptions,
): Promise<AgentConnection | undefined> {
  const { data, store } = options
  const isDurable = data !== 'none' || store !== undefined
  // Keeps servers out while this process runs agents: they would treat its runs as crashed.
  const isShared = data !== 'none' && store === undefined && isHeld(context.path(data), 'anyone')
  const release = data === 'none' ? () => undefined : lockData(context.path(data), 'shared')
  if (release === undefined) return undefined
  const log = (line: string) => context.stderr.write(`${printable(line)}\n`)
  const guard = guardProcess(context)
  try {
    const { attribute } = guard
    const { runtime, agents } = await openProject({
      ...options,
      dir: context.path(options.dir),
      cwd: context.path('.'),
      data: data === 'none' ? data : context.path(data),
      log,
      ...(debug && { debug: log }),
      env: context.env,
      attribute,
    })
    guard.bind(runtime)
    const reloads = new Set<() => void>()
    if (isServing) {
      // Runs of a process that lives are not left.
      if (!isShared) await runtime.recover()
      watchAgents(agents, log, () => {
        for (const tell of reloads) tell()
      })
    }
    const settings = mcpSettingsOf(options.config, { isShared: store !== undefined, isKept: isDurable })
    return omitUndefined({
      ...handlerConnection(context, runtime, {
        agentErrors: () => agents.errors,
        maxBodyBytes,
        // The command itself asks for it.
        mcp: settings === false ? {} : settings,
        onAgents(listener) {
          reloads.add(listener)
          return () => void reloads.delete(listener)
        },
      }),
      isDurable,
      isShared,
      flags,
      notice,
      async close() {
        agents.close()
        await runtime.close()
        guard.release()
        release()
      },
    })
  } catch (error) {
    guard.release()
    release()
    throw error
  }
}

/** Posts answers to a shared store: one of its servers continues the run. */
export async function openPoster(context: CommandContext, store: string, flags: string): Promise<AgentConnection> {
  const runtime = createPoster(context, await openShared(context, store))
  return {
    ...handlerConnection(context, runtime),
    isDurable: true,
    isPosted: true,
    flags,
    close: () => runtime.close(0),
  }
}

/** A runtime that executes nothing. */
export function createPoster(context: CommandContext, store: Store): Runtime {
  const { env } = context
  const registry = createRegistry({}, env, { log: store.log })
  const agents = { get: () => undefined, list: () => [] }
  return createRuntime({ agents, registry, store, secrets: secretValues({}, env), postsOnly: true })
}

function handlerConnection(
  context: CommandContext,
  runtime: Runtime,
  options: Pick<HandlerOptions, 'agentErrors' | 'maxBodyBytes' | 'mcp' | 'onAgents'> = {},
) {
  const handler = createHandler({
    ...options,
    runtime,
    // The user of the command can read and write the files and the store anyway.
    authorize: () => true,
    edit: true,
    protocol: 'cli',
    onError: (error) =>
      void context.stderr.write(`${printable(`error: ${runtime.redact(withoutCredentials(wordsOf(error)))}`)}\n`),
  })
  const url = 'http://localhost'
  const request: ServerRequest = async (path, { method = 'GET', accept = 'application/json', type, body } = {}) => {
    const headers = { accept, ...(type && { 'content-type': type }) }
    const response = await handler(new Request(url + path, { method, headers, ...(body !== undefined && { body }) }))
    if (response.ok) return response
    throw await errorOf(response, path)
  }
  return {
    ...requestConnection(request, url),
    client: new MillraceClient({ url, fetch: (input, init) => handler(new Request(input, init)) }),
    agents: async () => (await (await request('/api/agents')).json()) as AgentList,
    fetch: (path: string, init?: RequestInit) => handler(new Request(url + path, init)),
  }
}

/** Throws if the folder has no such agent, or its file has errors. */
export async function checkLocal(
  context: CommandContext,
  { id }: NamedAgent,
  { dir, endpoints }: LocalOptions,
): Promise<void> {
  const { agents } = await readAgents(context.path(dir), context.env, endpoints)
  const broken = agents.errors.find(({ file }) => file.replace(/\.ya?ml$/u, '') === id)
  if (broken !== undefined) {
    const { file, faults } = broken
    throw faultyAgent(formatFaults(join(dir, file), faults))
  }
  if (agents.get(id) !== undefined) return
  if (agents.list().length + agents.errors.length > 0) throw unknownAgent(id, agents)
  throw new MillraceError('usage', `There are no agents in ${dir} yet. ${initCure(context, dir)}.`)
}
