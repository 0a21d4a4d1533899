/**
 * Where agents run: on the server of `--url`, on the live server of the data folder, or in this process. All three are used
 * through the same client, so each command has a single code path.
 */
import { realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { CommandContext } from './context.ts'
import { compact } from '../part/compact.ts'
import { MillraceClient } from '../client/client.ts'
import { MillraceError } from '../part/error.ts'
import { pause } from '../async/pause.ts'
import type { Endpoint } from '../models/resolver.ts'
import { loadConfig } from '../project/load-config.ts'
import { parseEndpoint } from '../project/project.ts'
import { hashEndpoint } from '../server/server-file.ts'
import { settingsOf } from '../server/settings.ts'
import { whereFlags } from './where.ts'
import { storeUrlOf } from '../project/open-store.ts'
import { isServedBy } from './shared-store.ts'
import { agentFile, type NamedAgent } from './agent-file.ts'
import { checkAgents, checkData } from './folders.ts'
import { findServer, namedServer, type LiveServer } from './live-server.ts'
import { checkLocal, openLocal, type LocalOptions } from './local-backend.ts'
import { createRequest } from './remote-request.ts'
import { checkServed, type AgentList } from './served-agents.ts'
import { readThread, type Thread } from './thread.ts'

export interface BackendFlags {
  /** Folder of agents; default `agents`. */
  dir?: string | undefined
  data?: string | undefined
  url?: string | undefined
  /** A shared store. */
  store?: string | undefined
  endpoint: string[]
  debug?: boolean | undefined
  /** Use the live server even if it serves other agents: for runs that are in its log already. */
  isAnyServer?: boolean
  /** A data folder of an older version is migrated. */
  migrates?: boolean
  /** Only to answer what a run asks: with a shared store, a server goes on with it. */
  isAnswer?: boolean
}

export interface Backend {
  client: MillraceClient
  /** URL of the server; absent if agents run in this process. */
  url?: string
  /** Whether runs are recorded, so that they can be suspended. */
  isDurable: boolean
  /** Flags for commands about the runs here, such as ` --data elsewhere`; often empty. */
  where: string
  /** Something unexpected that the user should know. */
  notice?: string
  /** What is answered here goes on in a server that shares the store. */
  isElsewhere?: boolean
  /** Another command uses the data folder as well. Absent on a server. */
  isShared?: boolean
  agents(): Promise<AgentList>
  /** Undefined if the thread has no runs. */
  thread(id: string): Promise<Thread | undefined>
  close(): Promise<void>
}

/** A backend that is not open yet: nothing is locked or created. */
interface Place {
  /** Throws if the agent is unknown or has errors. */
  check(agent: NamedAgent): Promise<void>
  /** Undefined if a server has locked the folder meanwhile. */
  open(): Promise<Backend | undefined>
}

/** Throws on mistakes in the flags or the agent, before anything is opened or created. */
export async function checkAgent(context: CommandContext, agent: NamedAgent, flags: BackendFlags): Promise<void> {
  await (await findPlace(context, flags, agent.file !== undefined)).check(agent)
}

export async function openBackend(context: CommandContext, flags: BackendFlags, isFile = false): Promise<Backend> {
  // While a server starts or stops, it holds the lock for a moment without answering.
  for (let tries = 0; tries < 20; tries++) {
    const backend = await (await findPlace(context, flags, isFile)).open()
    if (backend !== undefined) return backend
    await pause(250)
  }
  const cure = 'Stop that server, or use another folder with --data.'
  throw new MillraceError('data-in-use', `A server has locked the data folder but does not answer. ${cure}`)
}

/** `isFile`: the agent was given as a path, and `flags.dir` is its folder. */
async function findPlace(context: CommandContext, flags: BackendFlags, isFile: boolean): Promise<Place> {
  const endpoints = flags.endpoint.map(parseEndpoint)
  if (flags.url !== undefined) {
    const own = isFile ? 'An agent file' : endpoints.length > 0 ? '--endpoint' : undefined
    if (own !== undefined)
      throw new MillraceError(
        'usage',
        `${own} cannot be combined with --url: that server has its own. Leave out one of them.`,
      )
    return served(context, namedServer(context, flags.url), whereFlags({ data: '.millrace', url: flags.url }))
  }
  const { dir = 'agents' } = flags
  const isThere = statSync(context.path(dir), { throwIfNoEntry: false })?.isDirectory() === true
  // Without --dir and without ./agents, any agents of the server will do.
  const isOpen = !isThere && flags.dir === undefined
  if (!isOpen) checkAgents(context, dir, 'run')
  const config = isThere ? await loadConfig(context.path(dir)) : {}
  const { data, logFiles } = settingsOf(config, flags.data === undefined ? {} : { data: flags.data })
  const store = storeUrlOf(config.record ?? {}, flags.store, context.env)
  const where = whereFlags(compact({ data, store: flags.store }))
  checkData(context, data)
  if (store !== undefined && flags.isAnswer === true && (await isServedBy(context, store)))
    return elsewhere(context, store, where)
  // To continue the run in another process, the same tools and models are needed.
  const own = [...(dir === 'agents' ? [] : [`--dir ${dir}`]), ...flags.endpoint.map((text) => `--endpoint ${text}`)]
  const project = own.map((flag) => ` ${flag}`).join('')
  const local: LocalOptions = {
    dir,
    config,
    data,
    store,
    logFiles,
    endpoints,
    where: where + project,
    keepsVersion: flags.migrates !== true,
    debug: flags.debug === true,
  }
  const server = data === 'none' || store !== undefined ? undefined : await findServer(context, data)
  if (server === undefined) {
    checkAgents(context, dir, 'run')
    return inProcess(context, local)
  }
  const obstacle = flags.isAnyServer
    ? undefined
    : await obstacleOf(context, server, isOpen ? undefined : dir, endpoints)
  if (obstacle === undefined) return served(context, server, whereFlags({ data }), isThere ? dir : undefined)
  // The server's database is locked: this run is recorded in a folder beside it.
  const beside = join(data, 'local')
  const notice = `${obstacle}. Running in this process instead; see the run with: millrace ps --data ${beside}`
  return inProcess(context, { ...local, data: beside, where: whereFlags({ data: beside }) + project, notice })
}

/** Why the server cannot run this agent; undefined if it can. */
async function obstacleOf(
  context: CommandContext,
  server: LiveServer,
  dir: string | undefined,
  endpoints: Endpoint[],
): Promise<string | undefined> {
  const at = `The server at ${server.url}`
  if (dir !== undefined && server.dir !== realpathSync(context.path(dir)))
    return `${at} serves ${server.dir ?? 'other agents'}, not ${dir}`
  for (const endpoint of endpoints) {
    if (server.endpoints?.includes(await hashEndpoint(endpoint))) continue
    return `${at} was started without --endpoint ${endpoint.name}=…`
  }
  return undefined
}

/** Servers that share the store go on with what is answered here. */
function elsewhere(context: CommandContext, store: string, where: string): Place {
  return {
    check: async () => undefined,
    open: async () => (await import('./elsewhere.ts')).answerElsewhere(context, store, where),
  }
}

function inProcess(context: CommandContext, options: LocalOptions): Place {
  return { check: (agent) => checkLocal(context, agent, options), open: () => openLocal(context, options) }
}

/** `dir`: the folder that the server serves, if it is on this machine. */
function served(context: CommandContext, server: LiveServer, where: string, dir?: string): Place {
  const { url, key } = server
  const request = createRequest(url, server)
  const agents = async () => (await (await request('/api/agents')).json()) as AgentList
  return {
    check: ({ id, file }) => checkServed(context, { id, file: file ?? agentFile(context, id, dir), request, url }),
    open: async () => ({
      client: new MillraceClient(compact({ url, apiKey: key })),
      url,
      isDurable: true,
      where,
      agents,
      thread: (id) => readThread(request, id),
      close: async () => undefined,
    }),
  }
}
