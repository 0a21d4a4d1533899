/** One worker of the pool, as the pool sees it: its scripts, what it works on, and the watchdog. */
import type { Worker } from 'node:worker_threads'
import { messageOf } from '../part/error.ts'
import { noSandbox, ScriptDropped, type CallOutcome, type Script, type ScriptRun, type ScriptState } from './sandbox.ts'
import { limitError } from './script-error.ts'
import { workerUrl } from './worker-url.ts'
import type { FromWorker, ToWorker, WorkerReady, WorkerSetup } from './worker.ts'

export interface Link {
  start(script: Script, signal?: AbortSignal): ScriptRun
  /** What it has not replied to. */
  queued(): number
  /** Its scripts. */
  count(): number
  /** Ends the thread; its scripts are dropped. */
  end(reason: ScriptDropped['reason']): Promise<void>
}

export interface LinkedRun {
  /** Bytes of its VM. */
  readonly size: number
  drop(reason: ScriptDropped['reason']): void
}

export interface LinkOptions {
  idleMs: number
  graceMs: number
  stateChanged(run: LinkedRun, isWaiting: boolean): void
  gone(link: Link): void
}

interface Run extends LinkedRun {
  id: number
  script: Script
  size: number
  timeLeft: number
  stop: Int32Array
  /** The state it ended in, or why it is gone. */
  ended?: ScriptState | Error
  finish(ended: ScriptState | Error): void
}

/** What the worker was sent, in order: it works on the first. */
interface Request extends PromiseWithResolvers<ScriptState> {
  run: Run
  /** CPU of the thread when its script was found to be ended from outside. */
  endedAt?: number
}

/** The stack is what makes deep recursion in a VM an error instead of a trap: decisions/0039. */
const resourceLimits = { stackSizeMb: 16, maxOldGenerationSizeMb: 512 }

export function createLink(setup: WorkerSetup, { idleMs, graceMs, stateChanged, gone }: LinkOptions): Link {
  const worker = startWorker(setup)
  const runs = new Map<number, Run>()
  const requests: Request[] = []
  let ids = 0
  /** CPU of the thread when it last replied, in µs. */
  let cpu = 0
  let isReady = false
  let isGone = false
  let watchdog: NodeJS.Timeout | undefined
  let idle: NodeJS.Timeout | undefined

  function send(run: Run, message: ToWorker): Promise<ScriptState> {
    stateChanged(run, false)
    clearTimeout(idle)
    const request: Request = { ...Promise.withResolvers<ScriptState>(), run }
    // Whoever starts a script may not ask for its first state before it ends.
    request.promise.catch(() => undefined)
    requests.push(request)
    worker.ref()
    worker.postMessage(message)
    if (requests.length === 1) watch()
    return request.promise
  }

  worker.on('message', (reply: FromWorker | WorkerReady) => {
    cpu = reply.cpu
    if (!('id' in reply)) {
      isReady = true
      return watch()
    }
    const { run, resolve } = requests.shift()!
    ;[run.size, run.timeLeft] = [reply.size, reply.timeLeft]
    watch()
    if (run.ended === undefined) {
      const isWaiting = reply.state.state === 'waiting'
      if (isWaiting) stateChanged(run, !requests.some((each) => each.run === run))
      else run.finish(reply.state)
      resolve(reply.state)
    } else if (!(run.ended instanceof Error)) resolve({ ...run.ended, calls: [], console: [] })
    if (reply.isBroken) void end('worker')
    rest()
  })
  const failed = (error: unknown) => {
    if (isGone) return
    // It cannot start here at all.
    if (!isReady) fail(noSandbox(`the worker thread of scripts does not start (${messageOf(error)}).`))
    else if (requests.length > 0) {
      const { run, resolve } = requests.shift()!
      const crashed = { code: 'script-crashed', name: 'Error', message: 'The script crashed its worker.' } as const
      settleHead(run, resolve, { state: 'failed', error: crashed, calls: [], console: [], warnings: [] })
    }
    void end('worker')
  }
  worker.on('error', failed).on('exit', (code) => failed(`exit code ${code}`))

  function settleHead(run: Run, resolve: (state: ScriptState) => void, state: ScriptState): void {
    if (run.ended !== undefined) return
    run.finish(state)
    resolve(state)
  }

  function fail(error: Error): void {
    for (const run of runs.values()) run.finish(error)
  }

  /** Looks after the script that the worker runs now. */
  function watch(after?: number): void {
    clearTimeout(watchdog)
    const [head] = requests
    if (head === undefined || isGone || !isReady) return
    const allowed = head.run.ended === undefined ? head.run.timeLeft + graceMs : graceMs
    watchdog = setTimeout(() => void look(head, allowed), after ?? allowed)
    watchdog.unref()
  }

  async function look(head: Request, allowed: number): Promise<void> {
    // On a busy machine, much time passes with little of it for this thread: what counts is its CPU.
    const spent = await cpuOf(worker)
    if (head !== requests[0] || isGone) return
    // Nobody waits any longer for a script that was ended: its time begins now.
    if (head.run.ended !== undefined) head.endedAt ??= spent
    const left = spent === undefined ? 0 : allowed - (spent - (head.endedAt ?? cpu)) / 1000
    if (left > 1) return watch(left)
    const { run, resolve } = requests.shift()!
    const { limits } = run.script
    const error = limitError('time', limits)
    settleHead(run, resolve, { state: 'failed', error, calls: [], console: [], warnings: [] })
    void end('worker')
  }

  function rest(): void {
    if (requests.length > 0) return
    worker.unref()
    if (runs.size > 0 || isGone) return
    clearTimeout(idle)
    idle = setTimeout(() => void end('worker'), idleMs)
    idle.unref()
  }

  async function end(reason: ScriptDropped['reason']): Promise<void> {
    if (!isGone) {
      isGone = true
      clearTimeout(watchdog)
      clearTimeout(idle)
      gone(link)
      fail(new ScriptDropped(reason))
    }
    await worker.terminate()
  }

  const link: Link = {
    queued: () => requests.length,
    count: () => runs.size,
    end,
    start(script, signal) {
      const id = ++ids
      const stop = new Int32Array(new SharedArrayBuffer(4))
      const run: Run = {
        id,
        script,
        size: 0,
        timeLeft: script.limits.time,
        stop,
        finish(ended) {
          if (run.ended !== undefined) return
          run.ended = ended
          runs.delete(id)
          stateChanged(run, false)
          signal?.removeEventListener('abort', abort)
          if (!(ended instanceof Error)) return
          for (const each of requests) if (each.run === run) each.reject(ended)
        },
        drop(reason) {
          if (run.ended !== undefined) return
          run.finish(new ScriptDropped(reason))
          Atomics.store(stop, 0, 1)
          if (isGone) return
          worker.postMessage({ do: 'end', id } satisfies ToWorker)
          // It may compute, in a call that cannot be interrupted.
          if (requests[0]?.run === run) watch()
          rest()
        },
      }
      const abort = () => run.drop('ended')
      signal?.addEventListener('abort', abort)
      runs.set(id, run)
      const first = send(run, { do: 'start', id, script, stop })
      return {
        next: () => first,
        settle(n: number, outcome: CallOutcome, now: number): Promise<ScriptState> {
          const { ended } = run
          if (ended instanceof Error) return Promise.reject(ended)
          if (ended !== undefined) return Promise.resolve({ ...ended, calls: [], console: [] })
          return send(run, { do: 'settle', id, n, outcome, now })
        },
        end: () => run.drop('ended'),
      }
    },
  }
  return link
}

function startWorker(setup: WorkerSetup): Worker {
  try {
    // Nothing of this process goes in: no environment, no arguments, no flags.
    const { Worker: Thread } = process.getBuiltinModule('node:worker_threads')
    return new Thread(workerUrl, { workerData: setup, env: {}, argv: [], execArgv: [], resourceLimits })
  } catch (error) {
    throw noSandbox(`worker threads cannot be started (${messageOf(error)}).`)
  }
}

/** Of a thread, in µs, also while it computes. Undefined: it does not say. */
async function cpuOf(worker: Worker): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, 1000, undefined)
  try {
    const usage = await Promise.race([worker.cpuUsage(), promise])
    return usage === undefined ? undefined : usage.user + usage.system
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
  }
}
