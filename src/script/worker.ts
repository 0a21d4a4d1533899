/**
 * A worker thread of `pool.ts`: many VMs, one after the other. A trap of a VM, or a fault of Node's stripper, makes the whole thread unusable; the pool
 * replaces it then.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { messageOf } from '../part/error.ts'
import { compileScript } from './compile.ts'
import type { CallOutcome, Script, ScriptError, ScriptState } from './sandbox.ts'
import { limitError } from './script-error.ts'
import { createVm, type Engine, type Vm } from './vm.ts'

/** `stop`: set to 1, it ends the script while it computes. */
export type ToWorker =
  | { do: 'start'; id: number; script: Script; stop: Int32Array }
  | { do: 'settle'; id: number; n: number; outcome: CallOutcome; now: number }
  | { do: 'end'; id: number }

/** `cpu`: of the thread so far, in µs. `timeLeft`: of the script, in ms. `isBroken`: the thread must be replaced. */
export interface FromWorker {
  id: number
  state: ScriptState
  size: number
  timeLeft: number
  cpu: number
  isBroken: boolean
}

/** The first message: the thread has started. Its start counts for no script. */
export interface WorkerReady {
  cpu: number
}

export interface WorkerSetup {
  /** The URL of the module. */
  module: string
  wasm: WebAssembly.Module
}

const { module, wasm } = workerData as WorkerSetup
let engine: Engine | undefined
const vms = new Map<number, Vm>()
/** Bytes of VMs that ended. Their memory is freed when they are collected, and V8 does not know how large they are. */
let dead = 0
const collect = () => {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
}

function cpu(): number {
  // Absent in other runtimes: their time is that of the clock.
  const usage = (process.threadCpuUsage as typeof process.threadCpuUsage | undefined)?.()
  return usage === undefined ? performance.now() * 1000 : usage.user + usage.system
}

function drop(id: number): void {
  const vm = vms.get(id)
  if (vm === undefined) return
  dead += vm.size()
  vms.delete(id)
  vm.dispose()
  if (dead < 64 << 20) return
  dead = 0
  collect()
}

const failed = (error: ScriptError): ScriptState => ({ state: 'failed', error, calls: [], console: [], warnings: [] })

async function start(
  id: number,
  script: Script,
  stop: Int32Array,
): Promise<{ state: ScriptState; isBroken?: boolean }> {
  if (Atomics.load(stop, 0) !== 0) return { state: failed(gone) }
  const size = Buffer.byteLength(script.code)
  if (size > script.limits.code) return { state: failed(limitError('code', script.limits, size)) }
  const compiled = compileScript(script.code)
  if ('error' in compiled) return { state: failed(compiled.error), isBroken: compiled.isBroken === true }
  engine ??= { ...((await import(module)) as Omit<Engine, 'wasm'>), wasm }
  let vm: Vm
  try {
    vm = await createVm(engine, script, stop, cpu)
  } catch (error) {
    const { message, code } = { message: messageOf(error), code: 'script-memory' as const }
    return {
      state: failed({ code, name: 'Error', message: `The input does not fit into the script's memory (${message}).` }),
    }
  }
  vms.set(id, vm)
  return { state: vm.start(compiled.js) }
}

const gone: ScriptError = { code: 'script-crashed', name: 'Error', message: 'The script has ended.' }

async function handle(message: ToWorker): Promise<void> {
  const { id } = message
  if (message.do === 'end') return drop(id)
  // Each request has one reply: the pool counts on it.
  const result =
    message.do === 'start'
      ? await start(id, message.script, message.stop)
      : { state: vms.get(id)?.settle(message.n, message.outcome, message.now) ?? failed(gone) }
  const vm = vms.get(id)
  const reply: FromWorker = {
    id,
    state: result.state,
    size: vm?.size() ?? 0,
    timeLeft: vm?.timeLeft() ?? 0,
    cpu: cpu(),
    isBroken: result.isBroken === true || vm?.isBroken() === true,
  }
  if (result.state.state !== 'waiting') drop(id)
  parentPort!.postMessage(reply)
}

/** One message after the other: `start` waits for an instance. */
let turn = Promise.resolve()
parentPort!.on('message', (message: ToWorker) => {
  turn = turn.then(() => handle(message))
})
parentPort!.postMessage({ cpu: cpu() } satisfies WorkerReady)
