/**
 * Finds where agents run: on the server of `--url`, on the live server of the data folder, or in this process. All three are used
 * through the same client, so each command has a single code path.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pause } from '../../async/pause.ts'
import { MillraceClient } from '../../client/client.ts'
import type { Endpoint } from '../../models/resolver.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { loadConfig } from '../../project/load-config.ts'
import { storeUrlOf } from '../../project/open-store.ts'
import { parseEndpoint } from '../../project/project.ts'
import { hashText } from '../../server/http/key.ts'
import { hashEndpoint } from '../../server/server-file.ts'
import { settingsOf } from '../../server/settings.ts'
import { agentFile, faultyAgent, type NamedAgent, checkAgents, checkData } from '../paths.ts'
import { formatFlags, type AgentConnection, type AgentList } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import type { LocalOptions } from './in-process.ts'
import {
  createRequest,
  fetchFrom,
  findServer,
  namedServer,
  serverConnection,
  type LiveServer,
  type ServerRequest,
} from './server.ts'
import { isServedBy } from './shared-store.ts'

export interface AgentFlags {
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
  /** Only to answer a request of a run: a server that shares the store continues it. */
  isAnswer?: boolean
  /** The agents are offered to others for long: runs that a process has left go on, and the folder is watched. */
  isServing?: boolean
}

/** A connection that is not open yet: nothing is locked or created. */
interface Candidate {
  /** Throws if the agent is unknown or has errors. */
  check(agent: NamedAgent): Promise<void>
  /** Undefined if a server has locked the folder meanwhile. */
  open(): Promise<AgentConnection | undefined>
}

/** Throws on mistakes in the flags or the agent, before anything is opened or created. */
export async function checkAgent(context: CommandContext, agent: NamedAgent, flags: AgentFlags): Promise<void> {
  await (await findCandidate(context, flags, agent.file !== undefined)).check(agent)
}

/** `isFile`: the agent was given as a path, and `flags.dir` is its folder. */
export async function openAgents(context: CommandContext, flags: AgentFlags, isFile = false): Promise<AgentConnection> {
  // While a server starts or stops, it holds the lock for a moment without answering.
  for (let attempt = 0; attempt < 20; attempt++) {
    const connection = await (await findCandidate(context, flags, isFile)).open()
    if (connection !== undefined) return connection
    await pause(250)
  }
  const cure = 'Stop that server, or use another folder with --data.'
  throw new MillraceError('data-in-use', `A server has locked the data folder but does not answer. ${cure}`)
}

async function findCandidate(context: CommandContext, flags: AgentFlags, isFile: boolean): Promise<Candidate> {
  const endpoints = flags.endpoint.map(parseEndpoint)
  if (flags.url !== undefined) {
    const own = isFile ? 'An agent file' : endpoints.length > 0 ? '--endpoint' : undefined
    if (own !== undefined)
      throw new MillraceError(
        'usage',
        `${own} cannot be combined with --url: that server has its own. Leave out one of them.`,
      )
    return onServer(context, await namedServer(context, flags.url), formatFlags({ data: '.millrace', url: flags.url }))
  }
  const { dir = 'agents' } = flags
  const isThere = statSync(context.path(dir), { throwIfNoEntry: false })?.isDirectory() === true
  // Without --dir and without ./agents, any agents of the server will do.
  const isOpen = !isThere && flags.dir === undefined
  if (!isOpen) checkAgents(context, dir, 'run')
  const config = isThere ? await loadConfig(context.path(dir)) : {}
  const { data, logFiles } = settingsOf(config, flags.data === undefined ? {} : { data: flags.data })
  const store = storeUrlOf(config.record ?? {}, flags.store, context.env)
  const printed = formatFlags(omitUndefined({ data, store: flags.store }))
  checkData(context, data)
  if (store !== undefined && flags.isAnswer === true && (await isServedBy(context, store)))
    return posted(context, store, printed)
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
    flags: printed + project,
    keepsVersion: flags.migrates !== true,
    debug: flags.debug === true,
    isServing: flags.isServing === true,
  }
  const server = data === 'none' || store !== undefined ? undefined : await findServer(context, data)
  if (server === undefined) {
    checkAgents(context, dir, 'run')
    return inProcess(context, local)
  }
  const obstacle = flags.isAnyServer
    ? undefined
    : await obstacleOf(context, server, isOpen ? undefined : dir, endpoints)
  if (obstacle === undefined) {
    const find = () => findServer(context, data)
    return onServer(context, server, formatFlags({ data }), { dir: isThere ? dir : undefined, find })
  }
  // The server's database is locked: this run is recorded in a folder beside it.
  const beside = join(data, 'local')
  const notice = `${obstacle}. Running in this process instead; see the run with: millrace ps --data ${beside}`
  return inProcess(context, { ...local, data: beside, flags: formatFlags({ data: beside }) + project, notice })
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

function inProcess(context: CommandContext, options: LocalOptions): Candidate {
  return {
    check: async (agent) => (await import('./in-process.ts')).checkLocal(context, agent, options),
    open: async () => (await import('./in-process.ts')).openLocal(context, options),
  }
}

/** One of the servers that share the store continues the run. */
function posted(context: CommandContext, store: string, flags: string): Candidate {
  return {
    check: async () => undefined,
    open: async () => (await import('./in-process.ts')).openPoster(context, store, flags),
  }
}

/** `dir`: the folder that the server serves, if it is on this machine. `find`: where the server is now. */
function onServer(
  context: CommandContext,
  server: LiveServer,
  flags: string,
  { dir, find }: { dir?: string | undefined; find?: () => Promise<LiveServer | undefined> } = {},
): Candidate {
  const { url, key } = server
  const request = createRequest(server)
  return {
    check: ({ id, file }) => checkServed(context, { id, file: file ?? agentFile(context, id, dir), request, url }),
    open: async () => ({
      ...serverConnection(server),
      client: new MillraceClient(omitUndefined({ url, apiKey: key })),
      isDurable: true,
      flags,
      agents: async () => (await (await request('/api/agents')).json()) as AgentList,
      fetch: fetchFrom(server, find),
    }),
  }
}

/** How long to wait until the server has reloaded a changed file, in ms. */
const reloadTimeout = 2000
const reloadInterval = 50

interface ServedAgent {
  id: string
  /** The agent's file, if it is on this machine. */
  file: string | undefined
  request: ServerRequest
  url: string
  /** How long to wait for a changed file, in ms. */
  timeout?: number
}

/** Throws if the server has no such agent, the file has errors, or the server has another version of it. */
export async function checkServed(
  context: CommandContext,
  { id, file, request, url, timeout = reloadTimeout }: ServedAgent,
): Promise<void> {
  const wanted = file === undefined ? undefined : await hashText(readFileSync(context.path(file), 'utf8'))
  for (let waited = 0; ; waited += reloadInterval) {
    const { errors } = (await (await request('/api/agents')).json()) as AgentList
    const broken = errors.find((each) => each.file.replace(/\.ya?ml$/u, '') === id)
    if (broken !== undefined) throw faultyAgent(broken.message)
    const mayReload = wanted !== undefined && waited < timeout
    const found = await request(`/api/agents/${encodeURIComponent(id)}`).catch((error: unknown) => {
      // The server may not have loaded a new file yet.
      if (mayReload && error instanceof MillraceError && error.code === 'unknown-agent') return undefined
      throw error
    })
    const hash = found === undefined ? undefined : ((await found.json()) as { hash?: string }).hash
    if (wanted === undefined || hash === wanted) return
    if (!mayReload) {
      const cure = 'Restart the server, or run in this process with another --data folder.'
      throw new MillraceError('stale-agent', `The server at ${url} has another version of ${file}. ${cure}`)
    }
    await pause(reloadInterval)
  }
}
