/** Runs agents in this process, through the server's request handler but without a socket. */
import { join } from 'node:path'
import type { CommandContext } from './context.ts'
import { compact } from '../part/compact.ts'
import { MillraceClient } from '../client/client.ts'
import type { Config } from '../project/config.ts'
import { MillraceError } from '../part/error.ts'
import { withoutCredentials, wordsOf } from '../part/error-words.ts'
import { formatFaults } from '../pipeline/parse.ts'
import type { Endpoint } from '../models/resolver.ts'
import { unknownAgent } from '../runtime/runtime-errors.ts'
import { isHeld, lockData } from '../server/data-lock.ts'
import { createHandler } from '../server/handler.ts'
import { openProject, readAgents } from '../project/project.ts'
import { faultyAgent, type NamedAgent } from './agent-file.ts'
import type { Backend } from './backend.ts'
import { initCure } from './folders.ts'
import { guardProcess } from './guard-process.ts'
import { printable } from './printable.ts'
import { errorOf, type RemoteRequest } from './remote-request.ts'
import type { AgentList } from './served-agents.ts'
import { readThread } from './thread.ts'

export interface LocalOptions {
  dir: string
  config: Config
  /** Data folder, or `none`. */
  data: string
  /** A shared store, which has the runs instead. */
  store: string | undefined
  logFiles: boolean
  endpoints: Endpoint[]
  where: string
  notice?: string
  /** A database of an older version is refused, not migrated. */
  keepsVersion: boolean
  /** Print what helps to find a fault to stderr. */
  debug: boolean
}

/** Higher than a server's limit: attached files are limited by `input-files.ts`. */
const maxBodyBytes = 64 * 1024 * 1024

/** Undefined if a server has locked the data folder. */
export async function openLocal(
  context: CommandContext,
  { where, notice, debug, ...options }: LocalOptions,
): Promise<Backend | undefined> {
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
    const handler = createHandler({
      runtime,
      agentErrors: () => agents.errors,
      authorize: () => true,
      // Whoever runs this has the files of the agents.
      edit: true,
      protocol: 'cli',
      maxBodyBytes,
      onError: (error) => log(`error: ${runtime.redact(withoutCredentials(wordsOf(error)))}`),
    })
    const url = 'http://localhost'
    const request: RemoteRequest = async (path, { method = 'GET', accept = 'application/json' } = {}) => {
      const response = await handler(new Request(url + path, { method, headers: { accept } }))
      if (response.ok) return response
      throw await errorOf(response, path)
    }
    return compact({
      client: new MillraceClient({ url, fetch: (input, init) => handler(new Request(input, init)) }),
      isDurable,
      isShared,
      where,
      notice,
      agents: async () => (await (await request('/api/agents')).json()) as AgentList,
      thread: (id) => readThread(request, id),
      async close() {
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
