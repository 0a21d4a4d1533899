/**
 * The pool of worker threads that scripts run in. The server's own thread never runs a script: it stays free while a script computes, and a long call into the engine's
 * native code, which asks nobody whether it may go on, ends with its worker.
 */
import { messageOf, type MillraceError } from '../part/error.ts'
import { parseJson } from '../part/json.ts'
import type { createLink, Link, LinkedRun } from './pool-worker.ts'
import { noSandbox, ScriptDropped, type SandboxPool, type Script, type ScriptRun } from './sandbox.ts'
import type { WorkerSetup } from './worker.ts'

export interface PoolOptions {
  /** Default 2. */
  workers?: number
  /** VMs that wait for a result. One more, and the one that waits longest is dropped. Default 200. */
  waiting?: number
  /** As long a VM may wait whatever their number. Default 1 s: its answer is likely to come soon, and would need a re-run. */
  shortWaitMs?: number
  /** Bytes of all VMs that wait. More, and the one that waits longest is dropped, however short that is. Default 1 GB. */
  waitingBytes?: number
  /** After this time without scripts, a worker ends. Default 30 s. */
  idleMs?: number
  /** A script that is over its time for as long, in a call that cannot be interrupted, ends with its worker. Default 250 ms. */
  graceMs?: number
}

/** Starts nothing, loads nothing: the first script does. */
export function createSandboxPool(options: PoolOptions = {}): SandboxPool {
  const { workers = 2, waiting = 200, shortWaitMs = 1000, waitingBytes = 1 << 30 } = options
  const { idleMs = 30_000, graceMs = 250 } = options
  const links = new Set<Link>()
  /** Since when each waits; longest first. */
  const waits = new Map<LinkedRun, number>()
  let bytes = 0
  let setup: Promise<{ worker: WorkerSetup; createLink: typeof createLink }> | undefined
  let isClosed = false

  const stateChanged = (run: LinkedRun, isWaiting: boolean) => {
    if (waits.delete(run)) bytes -= run.size
    if (!isWaiting) return
    const now = performance.now()
    waits.set(run, now)
    bytes += run.size
    for (const [each, since] of waits) {
      const isCrowded = waits.size > waiting && now - since >= shortWaitMs
      if (!isCrowded && (bytes <= waitingBytes || waits.size === 1)) break
      // It leaves the list: `drop` calls this function.
      each.drop('waiting')
    }
  }

  function linkFor(made: Awaited<NonNullable<typeof setup>>): Link {
    const best = [...links].toSorted((a, b) => a.queued() - b.queued() || a.count() - b.count())[0]
    if (best !== undefined && (best.queued() === 0 || links.size >= workers)) return best
    const link = made.createLink(made.worker, { idleMs, graceMs, stateChanged, gone: (each) => links.delete(each) })
    links.add(link)
    return link
  }

  return {
    get engine() {
      return `quickjs-wasi ${found().version}`
    },
    async start(script: Script, signal?: AbortSignal): Promise<ScriptRun> {
      signal?.throwIfAborted()
      if (isClosed) throw new ScriptDropped('closed')
      // A failure is not kept: the package may be installed meanwhile.
      const made = await (setup ??= loadSetup().catch((error: unknown) => {
        setup = undefined
        throw error
      }))
      signal?.throwIfAborted()
      if (isClosed) throw new ScriptDropped('closed')
      return linkFor(made).start(script, signal)
    },
    async close() {
      isClosed = true
      await Promise.all([...links].map((link) => link.end('closed')))
    },
  }
}

/** Why scripts cannot run in this process, for `millrace check` and the start of a server; undefined if they can. Starts nothing. */
export function sandboxFault(): MillraceError | undefined {
  try {
    found()
    return undefined
  } catch (error) {
    return error as MillraceError
  }
}

/** Where `quickjs-wasi` is: an optional peer. */
function found(): { module: string; wasm: string; version: string } {
  // Looked up, not imported: bundles for edge runtimes must not import them.
  const builtin = globalThis.process?.getBuiltinModule
  if (typeof builtin?.('node:worker_threads')?.Worker !== 'function')
    throw noSandbox('this runtime has no worker threads.')
  const { createRequire } = builtin('node:module')
  const { readFileSync } = builtin('node:fs')
  const require = createRequire(import.meta.url)
  try {
    const [module, wasm] = [require.resolve('quickjs-wasi'), require.resolve('quickjs-wasi/quickjs.wasm')]
    const manifest = parseJson(readFileSync(require.resolve('quickjs-wasi/package.json'), 'utf8')) as {
      version: string
    }
    if (!manifest.version.startsWith('3.')) throw new Error(`its version is ${manifest.version}`)
    return { module, wasm, version: manifest.version }
  } catch (error) {
    const isMissing = (error as { code?: string }).code === 'MODULE_NOT_FOUND'
    const why = isMissing ? 'is not installed' : `cannot be used (${messageOf(error)})`
    throw noSandbox(`the package quickjs-wasi ${why}. Run \`npm install quickjs-wasi@3\`.`)
  }
}

async function loadSetup() {
  const { module, wasm } = found()
  // The source of the thread is long, and most processes run no script.
  const { createLink } = await import('./pool-worker.ts')
  const { readFile } = process.getBuiltinModule('node:fs/promises')
  const { pathToFileURL } = process.getBuiltinModule('node:url')
  const worker = { module: pathToFileURL(module).href, wasm: await WebAssembly.compile(await readFile(wasm)) }
  return { worker, createLink }
}
