/**
 * One script in one VM of quickjs-wasi. All that crosses the border passes here, as texts and numbers: values of the guest are looked at for nothing but "is
 * this a string" (`isString` asks the engine, no code of the guest), and nothing of ours goes in but texts and numbers. Keep it short, so that it can be
 * audited: an escape needs a fault in V8's WebAssembly, or in here.
 */
import { createHash } from 'node:crypto'
import type { JSValueHandle, QuickJS, QuickJSOptions } from 'quickjs-wasi'
import { guestSource } from './guest.ts'
import { createHost } from './host.ts'
import type { CallOutcome, Script, ScriptError, ScriptState } from './sandbox.ts'
import { limitError, locate, toScriptError } from './script-error.ts'

export interface Engine {
  QuickJS: { create(options: QuickJSOptions): Promise<QuickJS> }
  Intrinsics: { ALL: number; WEAK_REF: number; PERFORMANCE: number }
  wasm: WebAssembly.Module
  /** The guest's code, compiled by the first VM: the others start in half the time. */
  guest?: Uint8Array
}

export interface Vm {
  /** `js`: the script without types, in its wrapper (`compile.ts`). */
  start(js: string): ScriptState
  settle(n: number, outcome: CallOutcome, now: number): ScriptState
  /** Bytes of its linear memory, which never shrinks. */
  size(): number
  /** CPU that is left, in ms. */
  timeLeft(): number
  /** It trapped: neither it nor its thread may be used again. */
  isBroken(): boolean
  dispose(): void
}

const stackSize = 262_144

/** `stop`: one integer that another thread sets to end the script while it computes. `cpu`: of this thread, in µs. */
export async function createVm(engine: Engine, script: Script, stop: Int32Array, cpu: () => number): Promise<Vm> {
  const { limits } = script
  // The engine seeds `Math.random` from the clock when it starts. See decisions/0039.
  let clock = createHash('sha256').update(script.seed).digest().readBigUInt64LE() >> 4n
  let memory: WebAssembly.Memory | undefined
  const host = createHost(script)
  /** Rejected promises that nothing awaits, by identity. Both are kept: a promise that is freed leaves its identity to the next. */
  const unhandled = new Map<number, { promise: JSValueHandle; reason: JSValueHandle }>()
  let [used, began] = [0, cpu()]
  let [isBroken, isLate, isCompiling] = [false, false, false]
  const isOver = () => {
    if (used + cpu() - began > limits.time * 1000) isLate = true
    return isLate || Atomics.load(stop, 0) !== 0
  }
  const view = () => new DataView(memory!.buffer)

  const { ALL, WEAK_REF, PERFORMANCE } = engine.Intrinsics
  const vm = await engine.QuickJS.create({
    wasm: engine.wasm,
    memoryLimit: limits.memory,
    maxStackSize: stackSize,
    timezoneOffset: 0,
    intrinsics: ALL & ~(WEAK_REF | PERFORMANCE),
    interruptHandler: isOver,
    wasi: (its) => {
      memory = its
      return {
        clock_time_get: (_id: number, _precision: bigint, at: number) => (view().setBigUint64(at, clock, true), 0),
        random_get: (at: number, length: number) => (new Uint8Array(its.buffer, at, length).fill(7), 0),
        // What the C library prints goes nowhere: 8 is EBADF.
        fd_write: () => 8,
      }
    },
    onUnhandledRejection: (promise, reason, isHandled) => {
      const { identity } = promise
      if (isHandled) unhandled.delete(identity)
      else if (unhandled.size < 20) unhandled.set(identity, { promise: promise.dup(), reason: reason.dup() })
    },
  })
  clock = BigInt(script.now) * 1_000_000n

  const asText = (handle: JSValueHandle | undefined) => (handle?.isString ? handle.toString() : '')
  let answered: JSValueHandle | undefined
  const hostHandle = vm.newFunction('host', (what, ...texts) => {
    const answer = host.said(asText(what), texts.map(asText))
    if (answer === undefined) return vm.undefined
    answered?.dispose()
    return (answered = vm.newString(answer))
  })
  // Before the script: the code is that of the engine and nobody else's. 48: without source and places.
  engine.guest ??= vm.compile(guestSource, 'guest', 0, 48)
  const enterGuest = vm.callFunction(
    vm.evalBytecode(engine.guest),
    vm.undefined,
    hostHandle,
    vm.newString(JSON.stringify(script.toolNames)),
    vm.newString(script.input),
    vm.newNumber(limits.calls),
    vm.newNumber(limits.console),
  )
  const enter = (what: string, ...values: JSValueHandle[]) => {
    const all = [vm.newString(what), ...values]
    const result = vm.callFunction(enterGuest, vm.undefined, ...all)
    for (const each of all) each.dispose()
    return result
  }

  /** What ended a part of the script from outside of it: the guest catches all that can be caught. */
  function endedBy(error: unknown): ScriptError {
    const { name, stack } = error as { name?: string; stack?: string }
    if (isLate) return locate(limitError('time', limits), script.code, stack)
    if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) {
      isBroken = true
      return {
        code: 'script-crashed',
        name: 'Error',
        message: "The script's VM crashed: it nests too deeply, or met a fault of the engine.",
      }
    }
    if (isCompiling && name === 'SyntaxError') return locate(toScriptError(error, 'bad-script'), script.code, stack)
    return locate(limitError('memory', limits), script.code, stack)
  }

  /** Runs a part of the script, and its jobs to their end. */
  function proceed(part: () => void): ScriptState {
    began = cpu()
    try {
      part()
      vm.executePendingJobs()
      // An interrupt may end only what an async generator was about.
      if (isLate) host.ended = { error: limitError('time', limits) }
      else if (host.open.size === 0) host.ended ??= { error: stuck }
    } catch (error) {
      host.ended = { error: endedBy(error) }
    }
    const { ended } = host
    const warnings = ended === undefined ? [] : warningsOf()
    used += cpu() - began
    const news = host.take()
    if (ended === undefined) return { state: 'waiting', ...news }
    return 'value' in ended
      ? { state: 'done', ...ended, ...news, warnings }
      : { state: 'failed', ...ended, ...news, warnings }
  }

  function warningsOf() {
    const calls = Array.from(host.open, ([n, name]) => ({ kind: 'open-call' as const, n, name }))
    if (isBroken || isLate) return calls
    const errors = Array.from(unhandled.values(), ({ reason }) => {
      try {
        return locate(toScriptError(asText(enter('describe', reason))), script.code)
      } catch (error) {
        return endedBy(error)
      }
    })
    return [...calls, ...errors.map((error) => ({ kind: 'unhandled' as const, error }))]
  }

  return {
    start: (js) =>
      proceed(() => {
        isCompiling = true
        const main = vm.evalCode(js, 'script')
        isCompiling = false
        enter('run', main).dispose()
      }),
    settle(n, outcome, now) {
      if (host.ended !== undefined || !host.open.delete(n)) return proceed(() => {})
      clock = BigInt(now) * 1_000_000n
      const size = 'value' in outcome ? Buffer.byteLength(outcome.value) : 0
      const error =
        size > limits.callValue ? limitError('callValue', limits, size) : 'error' in outcome ? outcome.error : undefined
      const { name = 'Error', message = '', code = '' } = error ?? {}
      const text = 'value' in outcome && error === undefined ? outcome.value : JSON.stringify({ name, message, code })
      return proceed(() =>
        enter('settle', vm.newNumber(n), error === undefined ? vm.false : vm.true, vm.newString(text)).dispose(),
      )
    },
    size: () => memory?.buffer.byteLength ?? 0,
    timeLeft: () => Math.max(0, limits.time - used / 1000),
    isBroken: () => isBroken,
    dispose: () => vm.dispose(),
  }
}

const stuck: ScriptError = {
  code: 'script-stuck',
  name: 'Error',
  message: 'The script waits for a promise that nothing will settle: no call is open.',
}
