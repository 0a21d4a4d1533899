/**
 * Where agents run: in the live server of the data folder, in one that `--url` names, or in this process. All are asked
 * through the same client, so that each command has one path.
 */
import { realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { MillraceClient } from '../client/client.ts'
import { MillraceError } from '../part/error.ts'
import { pause } from '../part/pause.ts'
import type { Endpoint } from '../run/models/resolver.ts'
import { loadConfig } from '../server/load-config.ts'
import { parseEndpoint } from '../server/project.ts'
import { hashEndpoint } from '../server/server-file.ts'
import { settingsOf } from '../server/settings.ts'
import { whereFlags } from './access.ts'
import { agentFile, type NamedAgent } from './agent-file.ts'
import { checkAgents, checkData } from './folders.ts'
import { findServer, namedServer, type LiveServer } from './live-server.ts'
import { checkLocal, openLocal, type LocalOptions } from './local-backend.ts'
import { createRequest } from './remote-request.ts'
import { checkServed, type AgentList } from './served-agents.ts'
import { readThread, type Thread } from './thread.ts'

export interface BackendFlags {
  /** Folder of the agents; default `agents`. */
  dir?: string | undefined
  data?: string | undefined
  url?: string | undefined
  endpoint: string[]
  /** A run that is in the server's log is the server's, whatever agents it has. */
  isAnyServer?: boolean
}

export interface Backend {
  client: MillraceClient
  /** Of the server; absent where this process runs the agents. */
  url?: string
  /** Whether runs are kept, so that they can wait for an answer. */
  isDurable: boolean
  /** What a command about the runs here needs, such as ` --data elsewhere`; often nothing. */
  where: string
  /** What the user did not ask for and should know. */
  notice?: string
  /** Another command uses the data folder as well. Absent on a server. */
  isShared?: boolean
  agents(): Promise<AgentList>
  /** Undefined when the thread has no runs. */
  thread(id: string): Promise<Thread | undefined>
  close(): Promise<void>
}

/** A backend that has not been opened: nothing is locked, nothing was made. */
interface Place {
  /** Throws when the agent is not there, or has faults. */
  check(agent: NamedAgent): Promise<void>
  /** Undefined when a server has taken the folder meanwhile. */
  open(): Promise<Backend | undefined>
}

/** Throws what is wrong with the flags or the agent, before anything is opened or made. */
export async function checkAgent(agent: NamedAgent, flags: BackendFlags): Promise<void> {
  await (await findPlace(flags, agent.file !== undefined)).check(agent)
}

export async function openBackend(flags: BackendFlags, isFile = false): Promise<Backend> {
  // A server that starts or ends holds the folder for a moment without answering.
  for (let tries = 0; tries < 20; tries++) {
    const backend = await (await findPlace(flags, isFile)).open()
    if (backend !== undefined) return backend
    await pause(250)
  }
  const cure = 'Stop it, or choose another folder with --data.'
  throw new MillraceError('data-in-use', `A server holds the data folder and does not answer. ${cure}`)
}

/** `isFile`: the agent is given by its path, whose folder `flags.dir` is. */
async function findPlace(flags: BackendFlags, isFile: boolean): Promise<Place> {
  const endpoints = flags.endpoint.map(parseEndpoint)
  if (flags.url !== undefined) {
    const own = isFile ? 'A file of this machine' : endpoints.length > 0 ? '--endpoint' : undefined
    const cure = 'leave out one of the two'
    if (own !== undefined) throw new MillraceError('usage', `${own} means nothing to the server of --url; ${cure}.`)
    return served(namedServer(flags.url), whereFlags({ data: '.millrace', url: flags.url }))
  }
  const { dir = 'agents' } = flags
  const isThere = statSync(dir, { throwIfNoEntry: false })?.isDirectory() === true
  // Who names no folder and has none means whatever the server has.
  const isOpen = !isThere && flags.dir === undefined
  if (!isOpen) checkAgents(dir, 'run')
  const config = isThere ? await loadConfig(dir) : {}
  const { data, logFiles } = settingsOf(config, flags.data === undefined ? {} : { data: flags.data })
  checkData(data)
  // Who goes on with a run in a process of its own needs the same tools and models.
  const own = [...(dir === 'agents' ? [] : [`--dir ${dir}`]), ...flags.endpoint.map((text) => `--endpoint ${text}`)]
  const project = own.map((flag) => ` ${flag}`).join('')
  const local: LocalOptions = { dir, config, data, logFiles, endpoints, where: whereFlags({ data }) + project }
  const server = data === 'none' ? undefined : await findServer(data)
  if (server === undefined) {
    checkAgents(dir, 'run')
    return inProcess(local)
  }
  const obstacle = flags.isAnyServer ? undefined : await obstacleOf(server, isOpen ? undefined : dir, endpoints)
  if (obstacle === undefined) return served(server, whereFlags({ data }), isThere ? dir : undefined)
  // The server's log is the server's alone: a run beside it has one of its own.
  const beside = join(data, 'local')
  const notice = `${obstacle}: this run happens here and is recorded in ${beside} (millrace ps --data ${beside})`
  return inProcess({ ...local, data: beside, where: whereFlags({ data: beside }) + project, notice })
}

/** Why the server cannot run what is asked for. */
async function obstacleOf(
  server: LiveServer,
  dir: string | undefined,
  endpoints: Endpoint[],
): Promise<string | undefined> {
  const at = `The server at ${server.url}`
  if (dir !== undefined && server.dir !== realpathSync(dir))
    return `${at} serves ${server.dir ?? 'other agents'}, not ${dir}`
  for (const endpoint of endpoints) {
    if (server.endpoints?.includes(await hashEndpoint(endpoint))) continue
    return `${at} was started without --endpoint ${endpoint.name}=…`
  }
  return undefined
}

function inProcess(options: LocalOptions): Place {
  return { check: (agent) => checkLocal(agent, options), open: () => openLocal(options) }
}

/** `dir`: the folder that the server serves, where it is known to be on this machine. */
function served(server: LiveServer, where: string, dir?: string): Place {
  const { url, key } = server
  const request = createRequest(url, server)
  const agents = async () => (await (await request('/api/agents')).json()) as AgentList
  return {
    check: ({ id, file }) => checkServed({ id, file: file ?? agentFile(id, dir), request, url }),
    open: async () => ({
      client: new MillraceClient({ url, ...(key === undefined ? undefined : { apiKey: key }) }),
      url,
      isDurable: true,
      where,
      agents,
      thread: (id) => readThread(request, id),
      close: async () => undefined,
    }),
  }
}
