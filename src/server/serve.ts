/** The server on Node: serves a project over HTTP, from start to graceful shutdown. */
import { realpathSync } from 'node:fs'
import { resolve, extname } from 'node:path'
import { pause } from '../async/pause.ts'
import { timeOf } from '../part/log.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { checkKey } from '../part/check-key.ts'
import { MillraceError } from '../part/error.ts'
import { isHeld } from './data-lock.ts'
import { type ErrorGuard, reportOfRun, stackOf, type Level, type Reporter } from './error-guard.ts'
import { createHandler } from './handler.ts'
import { checkBind, checkKeyAgents } from './access/check-access.ts'
import { createAccess } from './access/create-access.ts'
import { createSimpleAccess } from './access/simple-access.ts'
import type { Handler } from './handler-context.ts'
import { loadConfig } from '../project/load-config.ts'
import { isLoopback } from '../part/loopback.ts'
import { createNodeListener } from './http/node-listener.ts'
import { createAdmission, createCallerOf } from './http/admission.ts'
import { hashText } from './http/key.ts'
import { createPort, createStreams, openPort } from './http/port.ts'
import { refuse } from './http/router.ts'
import { credentialsIn } from '../project/secrets.ts'
import { wiresOf } from '../project/packs.ts'
import { openProject, type Project, type ProjectOptions } from '../project/project.ts'
import { closingError } from '../runtime/runtime-errors.ts'
import { createQuotas, type Quotas } from '../access/quotas.ts'
import { withQuotas } from './http/with-quotas.ts'
import { createLedger } from '../store/ledger.ts'
import { createLimits } from '../store/limits.ts'
import { reapProcesses } from '../processes/process-table.ts'
import { fleetMetrics, createProcessMetrics } from './fleet-metrics.ts'
import { createReporter, healthOf, reportOfStore, watchAgents } from './serve-report.ts'
import { claimData, hashEndpoint, writeServerFile } from './server-file.ts'
import { mcpSettingsOf, openAiSettingsOf, settingsOf, type Settings } from './settings.ts'
import { createServedTests } from './served-tests.ts'
import { createSocketListener } from './socket/socket-listener.ts'
import { version } from './version.ts'
import { readFile } from 'node:fs/promises'
import type { WebFile, WebFiles } from './routes/page.ts'

/** An `import` would call the getters that this module exports, which load Node's `fetch`: a tenth of the start-up time. */
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
  /** The token for `server.edit: 'token'`. */
  editToken?: string
  project: Project
  recovered: { resumed: number; interrupted: number }
  /** Stops accepting requests, gives runs their grace period, then closes everything. */
  close(): Promise<void>
}

export async function serve(options: ServeOptions): Promise<Served> {
  const { guard } = options
  const config = await loadConfig(options.dir)
  const { host, port: wanted, data: folder, store, logFiles } = settingsOf(config, options, options.env)
  const data = folder === 'none' ? folder : resolve(options.cwd ?? '', folder)
  const isShared = store !== undefined
  const { maxBodyBytes, keepAliveMs, allowedOrigins, rateLimit, streamLimit } = config.server ?? {}
  const { graceMs = 2000, drainMs = 1000 } = config.server ?? {}
  const streams = createStreams()
  const responses = createStreams()
  const metrics = createProcessMetrics(() => streams.size)
  const openai = openAiSettingsOf(config, options.env)
  // An empty key counts as no key.
  const apiKey = options.apiKey === '' ? undefined : options.apiKey
  if (apiKey !== undefined) checkKey(apiKey, 'MILLRACE_API_KEY')
  const isLocal = isLoopback(host)
  const { access: accessConfig } = config.server ?? {}
  const asksWho = apiKey !== undefined || accessConfig !== undefined
  const localOnly = isLocal && !asksWho
  checkBind(host, {
    isLocal,
    apiKey,
    access: accessConfig,
    quotas: config.server?.quotas,
    insecureNoAuth: options.insecureNoAuth,
  })
  const edit = config.server?.edit ?? localOnly
  if (edit === 'token' && (data === 'none' || isShared)) {
    const cure = 'Keep the runs in a data folder, or set it to true or false.'
    throw new MillraceError(
      'bad-config',
      `server.edit: "token" needs a data folder, for the file of the token. ${cure}`,
    )
  }
  const editToken = edit === 'token' ? newToken() : undefined
  if (logFiles && data === 'none') {
    throw new MillraceError(
      'usage',
      'Log files need a data folder: remove --data none (record.data) or turn log files off.',
    )
  }
  // Of several servers in a folder, only the first may kill leftover processes of an earlier one: the others have processes of their own.
  const isFirst = data !== 'none' && !(isShared && isHeld(data, 'anyone'))
  const release = claimData(data, isShared)
  let isDraining = false
  // A refused request has changed nothing, so a load balancer may send it to another server.
  const draining = () => (isDraining ? closingError() : undefined)
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
    if (isFirst) {
      const left = await reapProcesses(data)
      if (left > 0) note(`killed ${left} processes of CLI agents that the server before this one had left`, 'warn')
    }
    const secrets = [
      ...(options.secrets ?? []),
      ...[apiKey, editToken].filter((each) => each !== undefined),
      ...credentialsIn(store ?? ''),
    ]
    let quotas: Quotas | undefined
    project = await openProject(
      omitUndefined({
        ...options,
        config,
        data,
        store,
        logFiles,
        secrets,
        log: (line) => note(line, 'warn'),
        onStore: (failure) => report(reportOfStore(failure)),
        onRun: (event) => report(reportOfRun(event)),
        attribute: guard?.attribute,
        openAccount({ ledger = createLedger(), limits: shared = createLimits(), ...opened }, { server = {} }) {
          if (server.quotas === undefined) return undefined
          const now = () => timeOf(opened)
          quotas = createQuotas({ config: server.quotas, ledger, limits: shared, now, onRefused: metrics.refused })
          return quotas.openAccount
        },
      }),
    )
    const { runtime, agents } = project
    // An agent whose file cannot be read now may come later.
    if (agents.errors.length === 0) {
      checkKeyAgents(
        accessConfig ?? {},
        runtime.agents.list().map(({ id }) => id),
      )
    }
    const tests = createServedTests({ runtime, onError, secrets, config, data, folder: options })
    const recovered = await runtime.recover()
    void project.files?.catchUp()
    const runsPerMinute = rateLimit?.runsPerMinute
    const own =
      runsPerMinute === undefined && streamLimit === undefined
        ? undefined
        : createAdmission({
            limits: runtime.store.limits ?? createLimits(),
            runsPerMinute,
            streams: streamLimit,
            callerOf: createCallerOf(apiKey && (await hashText(apiKey))),
            onRefused: metrics.refused,
          })
    const admission = quotas === undefined ? own : withQuotas(own, quotas)
    const reloads = createListeners()
    const now = () => timeOf(runtime.store)
    // With a key there may be others in the store.
    const access = asksWho
      ? await createAccess({
          config: accessConfig ?? {},
          apiKey,
          environment: options.env ?? {},
          log: runtime.store.log,
          now,
          allowedOrigins: new Set(allowedOrigins),
          report: onError,
        })
      : createSimpleAccess({ now, report: onError })
    const editing = { agentEditor: agents.editor, edit: edit !== false, editToken }
    const handler = createHandler(
      omitUndefined({
        runtime,
        wires: wiresOf(project.config),
        agentErrors: () => agents.errors,
        onAgents: reloads.listen,
        ...editing,
        tests: tests.open,
        health: () => healthOf(project!, guard),
        draining,
        localOnly,
        admission,
        quotas,
        onError,
        maxBodyBytes,
        keepAliveMs,
        allowedOrigins,
        openai,
        publicUrl: config.server?.publicUrl,
        mcp: mcpSettingsOf(config, { isShared, isKept: data !== 'none' || isShared }),
        responses: config.server?.responses,
        messages: config.server?.messages,
        // A non-loopback host without a key gets here only with `insecureNoAuth`.
        access: localOnly ? undefined : access,
        sockets: true,
        web: config.server?.page === false ? undefined : openWebFiles(),
        metrics: async () => metrics.text() + (await fleetMetrics(runtime.store)),
      }),
    )
    const reporting = reportRequests(handler, report)
    const sockets = createSocketListener(
      omitUndefined({
        runtime,
        onError,
        handler: reporting,
        access,
        asksWho,
        localOnly,
        allowedOrigins,
        maxBodyBytes,
        admission,
        draining,
        ...editing,
      }),
    )
    const { shouldUpgradeCallback } = sockets
    const listen = createNodeListener(reporting, onError, streams.add)
    const listener = sockets.before((incoming, outgoing) => {
      responses.add(outgoing)
      listen(incoming, outgoing)
    })
    const server = createServer({ noDelay: true, shouldUpgradeCallback }, listener)
    server.on('upgrade', sockets.upgrade).on('clientError', refuse)
    const url = await openPort(server, wanted, host)
    const port = createPort(server)
    // Other processes find a server with a shared store through the store.
    writeServerFile(
      isShared ? 'none' : data,
      omitUndefined({
        url,
        pid: process.pid,
        version,
        dir: realpathSync(options.dir),
        endpoints: await Promise.all((project.config.models?.endpoints ?? []).map(hashEndpoint)),
        key: apiKey === undefined ? undefined : true,
        token: editToken,
      }),
    )
    void runtime.store.fleet.introduce?.({ version, url }).catch(onError)
    watchAgents(agents, note, () => {
      sockets.announceAgents()
      reloads.tell()
    })

    // Not needed for the start, so it is loaded once the server responds.
    const housekeeping = import('../record/hold-retention.ts').then(({ keepHouse }) =>
      keepHouse(runtime.store, config.record, note, isShared || data === 'none' ? undefined : data),
    )

    let closing: Promise<void> | undefined
    async function close(): Promise<void> {
      const began = performance.now()
      isDraining = true
      agents.close()
      await tests.close()
      void runtime.store.fleet.introduce?.({ draining: true }).catch(onError)
      // Polling clients must still receive the end of their runs. With several servers, clients stop using this one after its 503.
      const isKept = isShared || sockets.isPolled()
      if (!isKept) port.leave()
      await (await housekeeping).close()
      const left = (until: number) => Math.max(0, began + until - performance.now())
      await runtime.close(graceMs, async () => {
        if (isShared) {
          // Their runs have moved: they continue reading here while there is time, then elsewhere. Requests for a whole answer continue waiting,
          // too.
          await Promise.all([responses.ended(left(graceMs)), sockets.ended(left(graceMs))])
          await pause(left(drainMs))
          streams.breakOff()
        }
        await sockets.close()
      })
      port.leave()
      await port.left()
      access.close()
      metrics.close()
      release()
    }
    return omitUndefined({ url, editToken, project, recovered, close: () => (closing ??= close()) })
  } catch (error) {
    project?.agents.close()
    await project?.runtime.close(0)
    release()
    throw error
  }
}

/** 244 random bits. */
function newToken(): string {
  return `${crypto.randomUUID()}${crypto.randomUUID()}`.replaceAll('-', '')
}

/** A list of callbacks. */
export function createListeners() {
  const listeners = new Set<() => void>()
  return {
    listen(listener: () => void): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    tell(): void {
      for (const listener of listeners) listener()
    },
  }
}

/** Reports requests that were refused or failed before a run started. The outcome of a run is reported by the run. */
function reportRequests(handler: Handler, report: Reporter): Handler {
  return async (request) => {
    const response = await handler(request)
    if (response.status >= 400 && !response.headers.has('x-millrace-run-id')) {
      // Without the query, which may contain private data.
      const path = new URL(request.url).pathname
      // The reason for bad health was reported when it began.
      if (path === '/health') return response
      const { status, statusText } = response
      const { method } = request
      void errorIn(response).then((error) => {
        const { code, message = statusText } = error
        const level = status >= 500 ? ('error' as const) : ('warn' as const)
        report(omitUndefined({ level, event: 'request' as const, method, path, status, code, message }))
      })
    }
    return response
  }
}

async function errorIn(response: Response): Promise<{ code?: string; message?: string }> {
  try {
    const { error } = (await response.clone().json()) as { error?: { code?: unknown; message?: unknown } }
    const { code, message } = error ?? {}
    return {
      ...(typeof code === 'string' ? { code } : undefined),
      ...(typeof message === 'string' ? { message } : undefined),
    }
  } catch {
    return {}
  }
}

/** The built page, beside the server's code in the package. Read on first use and cached: it does not change. */
const types = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
])

/** Default folder: `dist/web` of this package, found from the sources and from the build. */
export function openWebFiles(folder: URL = builtPage()): WebFiles {
  const known = new Map<string, Promise<WebFile | undefined>>()

  async function load(path: string): Promise<WebFile | undefined> {
    const contentType = types.get(extname(path))
    const file = URL.parse(path, folder)
    // A path may point anywhere: only files in the folder are served.
    if (contentType === undefined || file?.href.startsWith(folder.href) !== true) return undefined
    try {
      return { body: new Uint8Array(await readFile(file)), contentType }
    } catch {
      return undefined
    }
  }

  return {
    async read(path) {
      const file = known.get(path) ?? load(path)
      // Missing files are not cached: clients may request any name.
      if ((await file) !== undefined) known.set(path, file)
      return file
    },
  }
}

function builtPage(): URL {
  const { url } = import.meta
  const at = url.lastIndexOf('/src/server/')
  return at === -1 ? new URL(url.replace(/\/dist\/.*$/u, '/dist/web/')) : new URL('../../dist/web/', url)
}
