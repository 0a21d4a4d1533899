/** The server on Node: serves a project over HTTP, from start to graceful shutdown. */
import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { AddressInfo } from 'node:net'
import type { Server } from 'node:http'
import { compact } from '../part/compact.ts'
import { checkKey } from '../part/check-key.ts'
import { MillraceError } from '../part/error.ts'
import type { Agent } from '../runtime/runtime.ts'
import { lockData } from './data-lock.ts'
import type { ErrorGuard } from './error-guard.ts'
import { createHandler } from './handler.ts'
import { loadConfig } from '../project/load-config.ts'
import { isLoopback } from './http/loopback.ts'
import { addressOf } from './http/incoming-request.ts'
import { createNodeListener } from './http/node-listener.ts'
import { createRateLimit } from './http/rate-limit.ts'
import { refuse } from './http/refuse.ts'
import { wiresOf } from '../project/wires.ts'
import { openProject, type Project, type ProjectOptions } from '../project/project.ts'
import { reapProcesses } from '../processes/process-records.ts'
import { createListeners } from './listeners.ts'
import { createProcessMetrics } from './process-metrics.ts'
import { reportRequests } from './report-requests.ts'
import { reportOfRun, stackOf, type Level, type Reporter } from './report.ts'
import { createReporter, healthOf, reportOfStore } from './serve-report.ts'
import { hashEndpoint, readServerFile, removeServerFile, writeServerFile } from './server-file.ts'
import { openAiSettingsOf, settingsOf, type Settings } from './settings.ts'
import { createSocketListener } from './socket/socket-listener.ts'
import { version } from './version.ts'
import { openWebFiles } from './web-files.ts'

/** An `import` would call the getters that this module exports, which load Node's `fetch`: a tenth of a start. */
const { createServer } = process.getBuiltinModule('node:http')

/** Settings that are left out come from the config, then from the defaults. */
export interface ServeOptions extends Omit<ProjectOptions, 'data' | 'config'>, Partial<Settings> {
  apiKey?: string
  /** Allows a non-loopback host without a key. */
  insecureNoAuth?: boolean
  /** Called with every report. Default: notes, errors included, go to `log`. */
  report?: Reporter
  log?: (line: string) => void
  /** Catches uncaught errors. The caller must install it. */
  guard?: ErrorGuard
}

export interface Served {
  url: string
  project: Project
  recovered: { resumed: number; interrupted: number }
  /** Stops accepting requests, gives runs their grace period, then closes everything. */
  close(): Promise<void>
}

export async function serve(options: ServeOptions): Promise<Served> {
  const { guard } = options
  const config = await loadConfig(options.dir)
  const { host, port: wanted, data, logFiles } = settingsOf(config, options)
  const { maxBodyBytes, keepAliveMs, allowedOrigins, graceMs, rateLimit: limited } = config.server ?? {}
  const metrics = createProcessMetrics()
  const rateLimit = limited && metrics.limit(createRateLimit(limited.runsPerMinute))
  const openai = openAiSettingsOf(config, options.env)
  // An empty key counts as no key.
  const apiKey = options.apiKey === '' ? undefined : options.apiKey
  if (apiKey !== undefined) checkKey(apiKey, 'MILLRACE_API_KEY')
  const isLocal = isLoopback(host)
  const localOnly = isLocal && apiKey === undefined
  if (!isLocal && apiKey === undefined && options.insecureNoAuth !== true) {
    const cure = 'Set MILLRACE_API_KEY, or pass --insecure-no-auth if anyone may use it.'
    throw new MillraceError(
      'no-key',
      `Refusing to listen on ${host} without a key: anyone who reaches it could run agents. ${cure}`,
    )
  }
  if (logFiles && data === 'none') {
    throw new MillraceError(
      'usage',
      'Log files need a data folder: remove --data none (record.data) or turn log files off.',
    )
  }
  const release = claimData(data)
  let project: Project | undefined
  const report = createReporter(options, () => project)
  const note = (message: string, level: Level = 'info') => report({ level, event: 'note', message })
  const onError = (error: unknown) => {
    // A failing store is reported once, not again with every request.
    const isKnown = project?.storeFailure !== undefined
    if (isKnown && error instanceof MillraceError && error.code === 'store-failed') return
    note(`error: ${stackOf(error)}`, 'error')
  }
  try {
    if (data !== 'none') {
      const left = await reapProcesses(resolve(data))
      if (left > 0) note(`killed ${left} processes of CLI agents that the server before this one had left`, 'warn')
    }
    const secrets = [...(options.secrets ?? []), ...(apiKey === undefined ? [] : [apiKey])]
    project = await openProject(
      compact({
        ...options,
        config,
        data,
        logFiles,
        secrets,
        log: (line) => note(line, 'warn'),
        onStore: (failure) => report(reportOfStore(failure)),
        onRun: (event) => report(reportOfRun(event)),
        attribute: guard?.attribute,
      }),
    )
    const { runtime, agents } = project
    guard?.bind(runtime)
    const recovered = await runtime.recover()
    void project.files?.catchUp()
    const reloads = createListeners()
    const handler = createHandler(
      compact({
        runtime,
        wires: wiresOf(project.config),
        agentErrors: () => agents.errors,
        agentEditor: agents.editor,
        edit: config.server?.edit ?? localOnly,
        health: () => healthOf(project!, guard),
        localOnly,
        admit: rateLimit && ((request) => rateLimit(addressOf(request) ?? 'an unknown address')),
        // A non-loopback host without a key gets here only with `insecureNoAuth`.
        authorize: isLocal || apiKey !== undefined ? undefined : () => true,
        onError,
        maxBodyBytes,
        keepAliveMs,
        allowedOrigins,
        openai,
        apiKey,
        sockets: true,
        web: config.server?.page === false ? undefined : openWebFiles(),
        metrics: metrics.text,
      }),
    )
    const told = reportRequests(handler, report)
    const sockets = createSocketListener(
      compact({ runtime, onError, handler: told, apiKey, localOnly, allowedOrigins, maxBodyBytes, rateLimit }),
    )
    const { shouldUpgradeCallback } = sockets
    const listener = createNodeListener(told, onError, metrics.stream)
    const server = createServer({ noDelay: true, shouldUpgradeCallback }, sockets.before(listener))
    server.on('upgrade', sockets.upgrade).on('clientError', refuse)
    await listen(server, wanted, host)
    const { port } = server.address() as AddressInfo
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
    writeServerFile(
      data,
      compact({
        url,
        pid: process.pid,
        version,
        dir: realpathSync(options.dir),
        endpoints: await Promise.all((project.config.models?.endpoints ?? []).map(hashEndpoint)),
        key: apiKey === undefined ? undefined : true,
      }),
    )
    let before = byId(agents.list())
    agents.watch(
      (changed, errors) => {
        for (const { message } of errors) note(message, 'error')
        const now = byId(agents.list())
        const broken = new Set(errors.map(({ file }) => file.replace(/\.ya?ml$/u, '')))
        for (const id of changed) note(fateOf(id, before.get(id), now.get(id), broken.has(id)))
        before = now
        sockets.announceAgents()
        reloads.tell()
      },
      (file) => note(`${file} has changed: restart the server to apply it`),
    )

    // Nobody waits for it, so it is loaded once the server answers.
    const housekeeping = import('../record/housekeeping.ts').then(({ keepHouse }) =>
      keepHouse(runtime.store, config.record, note),
    )

    let closing: Promise<void> | undefined
    async function close(): Promise<void> {
      agents.close()
      const closed = Promise.withResolvers<void>()
      let idle: ReturnType<typeof setInterval> | undefined
      const leavePort = () => {
        server.close(() => closed.resolve())
        // Idle keep-alive connections would keep the server open.
        idle = setInterval(() => server.closeIdleConnections(), 10)
      }
      const isPolled = sockets.isPolled()
      if (!isPolled) leavePort()
      await (await housekeeping).close()
      await runtime.close(graceMs, sockets.close)
      if (isPolled) leavePort()
      // All runs have ended and little remains to be sent, but readers may be slow or not reading at all.
      const enough = setTimeout(() => server.closeAllConnections(), 1000)
      await closed.promise
      clearInterval(idle)
      clearTimeout(enough)
      metrics.close()
      release()
    }
    return { url, project, recovered, close: () => (closing ??= close()) }
  } catch (error) {
    project?.agents.close()
    await project?.runtime.close(0)
    release()
    throw error
  }
}

function byId(agents: readonly Agent[]): Map<string, Agent> {
  return new Map(agents.map((agent) => [agent.id, agent]))
}

/** The effect of a reload on an agent, in one line. */
function fateOf(id: string, before: Agent | undefined, now: Agent | undefined, isBroken: boolean): string {
  if (isBroken && now === undefined) return `${id}: not loaded`
  if (isBroken && now === before) return `${id}: not reloaded, the previous version stays`
  if (now === undefined) return `removed: ${id}`
  return `${before === undefined ? 'added' : 'reloaded'}: ${id}`
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

/** Locks the data folder for this server, or throws `data-in-use`. */
function claimData(data: string): () => void {
  if (data === 'none') return () => undefined
  const release = lockData(data, 'alone')
  if (release === undefined) {
    const other = readServerFile(data)
    const who = other === undefined ? 'a run' : `process ${other.pid}`
    const where = other?.url === undefined ? '' : ` at ${other.url}`
    const cure = 'Stop it, or choose another folder with --data.'
    throw new MillraceError('data-in-use', `The data folder ${data} is used by ${who}${where}. ${cure}`)
  }
  writeServerFile(data, { pid: process.pid })
  return () => {
    removeServerFile(data)
    release()
  }
}
