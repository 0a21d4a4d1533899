/**
 * Scripts in the sandbox: 50 and 300 at once with 12 calls of 50 ms each, the cost of a call, and of a script without calls; beside quickjs-emscripten on the
 * process's own thread. Run with `npm run bench -- scripts`.
 */
import { createRequire } from 'node:module'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSandboxPool } from '../src/script/pool.ts'
import { defaultScriptLimits, ScriptDropped, type ScriptState } from '../src/script/sandbox.ts'
import { answerCalls, ownCpu } from './calls.ts'
import type { Options, Result, ResultRow, Sample } from './scenario.ts'

const [calls, delay] = [12, 50]
const padding = 'x'.repeat(80)
const asking = (n: number) =>
  `const all = []\nfor (let i = 0; i < ${n}; i++) all.push((await tools.orders({ id: i, padding: "${padding}" })).id)\nreturn all.length`
const plain =
  'const rows = []\nfor (let i = 0; i < 100; i++) rows.push({ id: i, total: i * 2 })\nreturn rows.map((row) => row.total).reduce((a, b) => a + b, 0)'

interface Subject {
  /** Runs a script to its end; each call is answered with its input, after so many ms (0: at once). */
  run(code: string, delay: number): Promise<string>
  close(): Promise<void>
}

function pooled(): Subject {
  const pool = createSandboxPool()
  const limits = { ...defaultScriptLimits, time: 60_000, calls: 1000 }
  let count = 0
  async function run(code: string, ms: number): Promise<string> {
    const script = { code, input: 'null', toolNames: ['orders'], limits, now: Date.now(), seed: `${count++}` }
    const log: { n: number; value: string; now: number }[] = []
    for (;;) {
      try {
        const vm = await pool.start(script)
        let state: ScriptState = await vm.next()
        for (const { n, value, now } of log) state = await vm.settle(n, { value }, now)
        while (state.state === 'waiting') {
          const [{ n, input: value }] = state.calls as [ScriptState['calls'][number]]
          if (ms > 0) await sleep(ms)
          log.push({ n, value, now: Date.now() })
          state = await vm.settle(n, { value }, Date.now())
        }
        if (state.state === 'failed') throw new Error(state.error.message)
        return state.value
      } catch (error) {
        // As an engine does: again from the log.
        if (!(error instanceof ScriptDropped)) throw error
      }
    }
  }
  return { run, close: () => pool.close() }
}

/** The parts of quickjs-emscripten that are used here. */
interface Handle {
  dispose(): void
}
interface Context {
  runtime: {
    setMemoryLimit(bytes: number): void
    setInterruptHandler(handler: () => boolean): void
    executePendingJobs(): { error?: Handle }
  }
  global: Handle
  newFunction(name: string, call: (input: Handle) => Handle): Handle
  newPromise(): { handle: Handle; resolve(value: Handle): void; settled: Promise<void> }
  newString(text: string): Handle
  getString(value: Handle): string
  setProp(target: Handle, key: string, value: Handle): void
  evalCode(code: string): unknown
  unwrapResult(result: unknown): Handle
  resolvePromise(promise: Handle): Promise<unknown>
  dispose(): void
}

async function emscripten(): Promise<Subject> {
  const load = createRequire(new URL('peers/package.json', import.meta.url))
  const { newQuickJSWASMModule } = load('quickjs-emscripten') as {
    newQuickJSWASMModule(): Promise<{ newContext(): Context }>
  }
  const module = await newQuickJSWASMModule()
  return {
    async run(code, ms) {
      const vm = module.newContext()
      vm.runtime.setMemoryLimit(32 << 20)
      vm.runtime.setInterruptHandler(() => false)
      const call = vm.newFunction('call', (input) => {
        const text = vm.getString(input)
        const promise = vm.newPromise()
        const answer = () => {
          const value = vm.newString(text)
          promise.resolve(value)
          value.dispose()
          vm.runtime.executePendingJobs()
        }
        if (ms > 0) setTimeout(answer, ms)
        else queueMicrotask(answer)
        return promise.handle
      })
      vm.setProp(vm.global, 'call', call)
      call.dispose()
      const tools = 'const tools = { orders: async (input) => JSON.parse(await call(JSON.stringify(input))) };\n'
      const promise = vm.unwrapResult(vm.evalCode(`${tools}(async () => {\n${code}\n})().then(JSON.stringify)`))
      const result = vm.resolvePromise(promise)
      vm.runtime.executePendingJobs()
      const value = vm.unwrapResult(await result)
      const text = vm.getString(value)
      value.dispose()
      promise.dispose()
      vm.dispose()
      return text
    },
    close: () => Promise.resolve(),
  }
}

/** In ms of CPU of all threads, MB, and ms. */
async function atOnce(
  subject: Subject,
  scripts: number,
): Promise<{ cpu: number; memory: number; late: number; took: number }> {
  globalThis.gc?.()
  const before = process.memoryUsage().rss
  const lateness = monitorEventLoopDelay({ resolution: 5 })
  let peak = before
  const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 20)
  const [cpu, began] = [ownCpu(), performance.now()]
  lateness.enable()
  await Promise.all(Array.from({ length: scripts }, () => subject.run(asking(calls), delay)))
  lateness.disable()
  clearInterval(timer)
  return {
    cpu: ((ownCpu() - cpu) * 1000) / scripts,
    memory: (peak - before) / (1 << 20),
    late: Math.max(0, lateness.max / 1e6 - 5),
    took: performance.now() - began,
  }
}

async function sampleOf(subject: Subject, quick: boolean): Promise<Sample> {
  const cpuOf = async (work: () => Promise<unknown>) => {
    const cpu = ownCpu()
    await work()
    return (ownCpu() - cpu) * 1000
  }
  const times = quick ? 5 : 50
  const alone = await cpuOf(async () => {
    for (let i = 0; i < times; i++) await subject.run(plain, 0)
  })
  const many = await cpuOf(() => subject.run(asking(1000), 0))
  const few = await cpuOf(() => subject.run(asking(1), 0))
  const fifty = await atOnce(subject, quick ? 5 : 50)
  const more = await atOnce(subject, quick ? 10 : 300)
  return {
    alone: alone / times,
    call: ((many - few) * 1000) / 999,
    cpu50: fifty.cpu,
    memory50: fifty.memory,
    late50: fifty.late,
    took50: fifty.took,
    cpu300: more.cpu,
    memory300: more.memory,
    late300: more.late,
    took300: more.took,
  }
}

async function measure({ rounds = 5, quick }: Options): Promise<Result[]> {
  const rows: (ResultRow & { make(): Subject | Promise<Subject> })[] = [
    { name: 'millrace', title: 'Millrace: quickjs-wasi, 2 workers', samples: [], make: pooled },
    { name: 'quickjs-emscripten', title: 'quickjs-emscripten, own thread', samples: [], make: emscripten },
  ]
  const subjects = new Map<ResultRow, Subject>()
  for (const row of rows) {
    try {
      const subject = await row.make()
      // A server has one for its life: V8 has optimised the engine's code then.
      for (let i = 0; i < (quick ? 2 : 100); i++) await Promise.all([subject.run(asking(50), 0), subject.run(plain, 0)])
      subjects.set(row, subject)
    } catch (error) {
      row.failed = (error as Error).message
    }
  }
  for (let round = 0; round < rounds; round++) {
    for (const [row, subject] of round % 2 === 0 ? subjects : [...subjects].toReversed()) {
      row.samples.push(await sampleOf(subject, quick))
    }
  }
  await Promise.all(Array.from(subjects.values(), (subject) => subject.close()))
  const column = (key: string, title: string, digits = 1, ratio = false) => ({ key, title, digits, ratio })
  return [
    {
      scenario: 'scripts',
      title: `scripts with ${calls} calls of ${delay} ms each, 50 and 300 at once; medians of ${rounds} rounds`,
      reference: 'quickjs-emscripten',
      columns: [
        column('alone', 'CPU ms without calls', 2, true),
        column('call', 'CPU µs a call', 0, true),
        column('cpu50', '50: CPU ms a script', 1, true),
        column('memory50', 'MB', 0),
        column('late50', 'late, max ms', 0),
        column('took50', 'ms', 0),
        column('cpu300', '300: CPU ms a script', 1, true),
        column('memory300', 'MB', 0),
        column('late300', 'late, max ms', 0),
        column('took300', 'ms', 0),
      ],
      rows: rows.map(({ name, title, samples, failed }) => ({ name, title, samples, failed })),
      notes: ['late: the longest delay of the event loop of the process. CPU is that of all its threads.'],
    },
  ]
}

answerCalls({ measure })
