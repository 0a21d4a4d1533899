/** The long-running server on Node: a project behind HTTP, from start to a tidy end. */
import { rmSync, writeFileSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer, type Server } from 'node:http'
import { join, resolve } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import { MillraceError } from '../part/error.ts'
import { createHandler } from './handler.ts'
import { openProject, type Project, type ProjectOptions } from './project.ts'
import { version } from './version.ts'

export interface ServeOptions extends ProjectOptions {
  port: number
  host: string
  apiKey?: string
  /** Listen beyond this machine without a key: said aloud. */
  insecureNoAuth?: boolean
  log?: (line: string) => void
}

export interface Served {
  url: string
  project: Project
  recovered: { resumed: number; interrupted: number }
  /** Takes no more requests, gives runs their grace time, closes everything. */
  close(): Promise<void>
}

export async function serve(options: ServeOptions): Promise<Served> {
  const { host, apiKey, data, log = () => undefined } = options
  if (!isLocal(host) && apiKey === undefined && options.insecureNoAuth !== true) {
    const cure = 'Set MILLRACE_API_KEY, or say --insecure-no-auth if everybody may use it.'
    throw new MillraceError('no-key', `Refusing to listen on ${host} without a key: anyone who reaches it could run agents. ${cure}`)
  }
  const release = lockData(data)
  let project: Project
  try {
    const secrets = [...(options.secrets ?? []), ...(apiKey === undefined ? [] : [apiKey])]
    project = await openProject({ ...options, secrets })
  } catch (error) {
    release()
    throw error
  }
  const { runtime, agents } = project
  const recovered = await runtime.recover()
  const handler = createHandler({
    runtime,
    agentErrors: () => agents.errors,
    onError: (error) => log(`error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`),
    ...(apiKey === undefined ? undefined : { apiKey }),
  })
  // The global Request and Response stay Node's own: the library must behave alike inside and outside of the server.
  const server = createServer(getRequestListener(handler, { overrideGlobalObjects: false }))
  server.on('connection', (socket) => socket.setNoDelay(true))
  await listen(server, options.port, host)
  const { port } = server.address() as AddressInfo
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  publish(data, { url, pid: process.pid, version, ...(apiKey === undefined ? undefined : { key: true }) })
  agents.watch((changed, errors) => {
    for (const { message } of errors) log(message)
    log(`reloaded: ${changed.join(', ')}`)
  })

  let closing: Promise<void> | undefined
  return {
    url,
    project,
    recovered,
    close: () =>
      (closing ??= (async () => {
        agents.close()
        const closed = new Promise((done) => server.close(done))
        server.closeIdleConnections()
        await runtime.close()
        server.closeAllConnections()
        await closed
        release()
      })()),
  }
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((done, fail) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const busy = `Port ${port} is in use; choose another with --port (0 picks a free one).`
      fail(error.code === 'EADDRINUSE' ? new MillraceError('port-in-use', busy) : error)
    })
    server.listen(port, host, done)
  })
}

function isLocal(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./u.test(host)
}

export interface ServerFile {
  pid: number
  /** Absent while it starts. */
  url?: string
  version?: string
  /** It wants `Authorization: Bearer`. */
  key?: boolean
}

/** The server that a data folder belongs to, if it is alive. */
export function readServerFile(data: string): ServerFile | undefined {
  try {
    const file = JSON.parse(readFileSync(join(resolve(data), 'server.json'), 'utf8')) as ServerFile
    process.kill(file.pid, 0)
    return file
  } catch {
    return undefined
  }
}

/** One runner process per data folder: two would each take the other's runs for crashed. */
function lockData(data: string): () => void {
  if (data === 'none') return () => undefined
  const other = readServerFile(data)
  if (other !== undefined && other.pid !== process.pid) {
    const where = other.url === undefined ? '' : ` at ${other.url}`
    const cure = 'Stop it, or choose another folder with --data.'
    throw new MillraceError('data-in-use', `The data folder ${data} is used by process ${other.pid}${where}. ${cure}`)
  }
  publish(data, { pid: process.pid })
  return () => rmSync(join(resolve(data), 'server.json'), { force: true })
}

function publish(data: string, file: ServerFile): void {
  if (data === 'none') return
  writeFileSync(join(resolve(data), 'server.json'), `${JSON.stringify(file)}\n`, { mode: 0o600 })
}
