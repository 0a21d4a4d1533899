import { afterAll, describe, expect, test } from 'vitest'
import { createSandboxPool, sandboxFault } from './pool.ts'
import { ScriptDropped, type ScriptCall, type ScriptRun } from './sandbox.ts'
import { describeScriptError } from './script-error.ts'
import { recursions } from './testing/attacks.ts'
import { runScript, scriptOf, startTime, type RunOptions } from './testing/run-script.ts'

const pool = createSandboxPool()
afterAll(() => pool.close())

const run = (code: string, options?: RunOptions) => runScript(pool, code, options)
const valueOf = async (code: string, options?: RunOptions) => (await run(code, options)).value
const errorOf = async (code: string, options?: RunOptions) => {
  const { error } = await run(code, options)
  return error === undefined ? undefined : `${error.code}: ${describeScriptError(error)}`
}

describe('a script', () => {
  test('gets its input and returns JSON', async () => {
    expect(await valueOf('return input.rows.map((row) => row * 2)', { input: { rows: [1, 2] } })).toEqual([2, 4])
    expect(await valueOf('')).toBe(null)
    expect(await valueOf('return { a: undefined, b: [undefined, NaN], c: new Date(0), d: new Error("no") }')).toEqual({
      b: [null, null],
      c: '1970-01-01T00:00:00.000Z',
      d: { name: 'Error', message: 'no' },
    })
    expect(await valueOf('return "ä\\ud83d\\ude00\\u0000\\u2028"')).toBe('ä\u{1f600}\u0000\u2028')
  })

  test('types are erased', async () => {
    expect(await valueOf('interface A { n: number }\nconst a: A = { n: 1 } as A\nreturn a!.n satisfies number')).toBe(1)
  })

  test('calls tools, several at once, and gets their results in the order of the answers', async () => {
    const code = `
      const order = []
      const call = async (id: number) => { const got = await tools.orders({ id }); order.push(id); return got }
      const all = await Promise.all([call(1), call(2), call(3)])
      return { order, all, last: await tools.search('x') }`
    const ran = await run(code, {
      answer: ({ input, n }) => ({ value: JSON.stringify({ n, input: JSON.parse(input) }) }),
      pick: (open) => open.length - 1,
    })
    expect(ran.calls).toEqual([
      { n: 1, kind: 'tool', name: 'orders', input: '{"id":1}' },
      { n: 2, kind: 'tool', name: 'orders', input: '{"id":2}' },
      { n: 3, kind: 'tool', name: 'orders', input: '{"id":3}' },
      { n: 4, kind: 'tool', name: 'search', input: '"x"' },
    ])
    expect(ran.value).toEqual({
      order: [3, 2, 1],
      all: [1, 2, 3].map((n) => ({ n, input: { id: n } })),
      last: { n: 4, input: 'x' },
    })
  })

  test('asks and describes by calls as well', async () => {
    const { calls, value } = await run('return [await ask("Go on?", { type: "boolean" }), await describe("orders")]', {
      answer: ({ kind }) => ({ value: JSON.stringify(kind) }),
    })
    expect(calls.map(({ kind, name, input }) => [kind, name, JSON.parse(input)])).toEqual([
      ['ask', 'ask', { message: 'Go on?', schema: { type: 'boolean' } }],
      ['describe', 'describe', { words: 'orders' }],
    ])
    expect(value).toEqual(['ask', 'describe'])
    expect(await errorOf('await ask({})')).toMatch(/TypeError at 1:\d+: ask\(message, schema\?\) needs a text/u)
  })

  test('a failed call rejects with its name, message and code, and can be caught', async () => {
    const answer = () => ({ error: { name: 'Denied', message: 'not today', code: 'denied' } })
    const code = 'try { await tools.orders() } catch (e) { return [e instanceof Error, e.name, e.message, e.code] }'
    expect(await valueOf(code, { answer })).toEqual([true, 'Denied', 'not today', 'denied'])
    const { error } = await run('const a = 1\nawait tools.orders()', { answer })
    expect(error).toEqual({
      code: 'script-error',
      name: 'Denied',
      message: 'not today',
      thrown: 'denied',
      line: 2,
      column: 13,
      source: 'await tools.orders()',
    })
  })

  test('prints to a console of its own', async () => {
    const code =
      'console.log("a", 1, { b: [2n] }, new Map(), () => 1, new TypeError("no"))\nconsole.error(undefined, null)'
    expect((await run(code)).console).toEqual([
      { level: 'log', text: 'a 1 {"b":["2n"]} "[object Map]" [function] TypeError: no' },
      { level: 'error', text: 'undefined null' },
    ])
  })

  test('one that was ended by its own return leaves its open calls, and failures that nobody awaited', async () => {
    const code = `
      for (const id of [1, 2]) void tools.orders({ id })
      void (async () => { null.x })()
      const late = Promise.reject(new Error('awaited later'))
      await tools.search()
      await late.catch(() => 1)
      return 1`
    const { warnings, value } = await run(code, { pick: (open) => open.length - 1 })
    expect(value).toBe(1)
    expect(warnings).toMatchObject([
      { kind: 'open-call', n: 1, name: 'orders' },
      { kind: 'open-call', n: 2, name: 'orders' },
      { kind: 'unhandled', error: { name: 'TypeError', line: 3 } },
    ])
  })

  test('makes no calls after its end', async () => {
    const code = 'void (async () => { await null; await null; await null; await null; tools.orders() })()\nreturn 1'
    expect(await run(code)).toMatchObject({ value: 1, calls: [], warnings: [] })
  })

  test('settling one that has ended changes nothing', async () => {
    const script = await pool.start(scriptOf('const a = tools.orders(); console.log(1); return 1'))
    const first = await script.next()
    expect(first).toMatchObject({ state: 'done', value: '1', calls: [{ n: 1 }], console: [{ text: '1' }] })
    expect(await script.settle(1, { value: '2' }, 0)).toMatchObject({
      state: 'done',
      value: '1',
      calls: [],
      console: [],
    })
    script.end()
    expect(await script.settle(1, { value: '2' }, 0)).toMatchObject({ state: 'done' })
  })

  test('several answers may be given at once, and are taken in their order', async () => {
    const script = await pool.start(
      scriptOf('const [a, b] = await Promise.all([tools.orders(), tools.search()])\nreturn [a, b]'),
    )
    await script.next()
    const states = await Promise.all([
      script.settle(2, { value: '2' }, 1),
      script.settle(1, { value: '1' }, 2),
      script.settle(1, { value: '3' }, 3),
    ])
    expect(states).toMatchObject([
      { state: 'waiting' },
      { state: 'done', value: '[1,2]' },
      { state: 'done', value: '[1,2]' },
    ])
  })
})

describe('time and chance', () => {
  test('Date is what the engine says, in UTC, and stands still between answers', async () => {
    const code = `
      const seen = [Date.now(), new Date().toString(), new Date().getTimezoneOffset()]
      for (let i = 0; i < 1e5; i++);
      seen.push(Date.now())
      await tools.orders()
      return [...seen, Date.now()]`
    expect(await valueOf(code)).toEqual([
      startTime,
      'Fri Nov 27 2026 12:00:00 GMT+0000',
      0,
      startTime,
      startTime + 1000,
    ])
  })

  test('Math.random depends on the seed and on nothing else', async () => {
    const code = 'return [Math.random(), Math.random(), Math.random()]'
    const [first, again, other, third] = await Promise.all(['a', 'a', 'b', 'a2'].map((seed) => valueOf(code, { seed })))
    expect(again).toEqual(first)
    expect(new Set([first, other, third].flatMap((each) => each as number[])).size).toBe(9)
    expect(first).toEqual(expect.arrayContaining([expect.any(Number)]))
  })
})

describe('limits', () => {
  test('time: endless loops end, in whatever they are', async () => {
    const limits = { time: 100 }
    const loops = {
      plain: 'while (true) {}',
      caught: 'for (;;) try { for (;;); } catch {} finally { continue }',
      regex: 'return /^(a+)+$/.test("a".repeat(40) + "b")',
      jobs: 'const go = () => Promise.resolve().then(go)\nawait go()',
      thenable: 'const t = { then: (r) => r(t) }\nawait t',
      microtasks: 'const f = async () => { for (;;) await null }\nvoid f()\nawait tools.orders()',
      getter: 'return { get a() { for (;;); } }',
      console: 'for (;;) console.log("x")',
      describe: 'const e = new Error()\nObject.defineProperty(e, "message", { get() { for (;;); } })\nthrow e',
      callLoop: 'for (;;) tools.orders().catch(() => 1)',
      unhandled:
        'const e = new Error()\nObject.defineProperty(e, "message", { get() { for (;;); } })\nvoid Promise.reject(e)\nreturn 1',
    }
    const ends = await Promise.all(
      Object.entries(loops).map(async ([name, code]) => [name, (await run(code, { limits })).error?.code]),
    )
    const { unhandled, ...rest } = Object.fromEntries(ends) as Record<string, string>
    expect(new Set(Object.values(rest))).toEqual(new Set(['script-timeout']))
    // It had returned before its error was looked at.
    expect(unhandled).toBe(undefined)
  })

  test('time is that of the script: waiting does not count, all parts do', async () => {
    const code =
      'for (let i = 0; i < 200; i++) { await tools.orders(); const t = []; for (let j = 0; j < 3e4; j++) t.push(j) }\nreturn 1'
    expect(await errorOf(code, { limits: { time: 60 } })).toMatch(
      /^script-timeout: Error.*: The script has used its 0.06 s of CPU time\./u,
    )
  })

  test('memory: a script that takes more ends, and no handler of its own runs', async () => {
    const code =
      'try { const a = []; for (;;) a.push(new Array(1000).fill(1)) } catch { console.log("caught") } finally { console.log("finally") }'
    const { error, console } = await run(code)
    expect(error).toMatchObject({ code: 'script-memory', message: 'The script has used its 32 MB of memory.', line: 1 })
    expect(console).toEqual([])
    expect((await run('return new Uint8Array(40 << 20).length')).error?.code).toBe('script-memory')
    expect((await run('await tools.orders()\nreturn "x".repeat(4e7).length')).error?.code).toBe('script-memory')
    expect((await run('return new Uint8Array(40 << 20).length', { limits: { memory: 64 << 20 } })).value).toBe(40 << 20)
    expect(await errorOf('return 1', { input: 'x'.repeat(1 << 20), limits: { memory: 1 << 20 } })).toMatch(
      /^script-memory: .*input does not fit/u,
    )
  })

  test('calls: one more rejects', async () => {
    const code =
      'const all = await Promise.allSettled([1, 2, 3].map((id) => tools.orders({ id })))\nreturn all.map((each) => each.reason?.message)'
    const { value, calls } = await run(code, { limits: { calls: 2 } })
    expect(value).toEqual(
      [null, null, 'This script has made its 2 calls.'].map((each) => each ?? undefined).map((each) => each ?? null),
    )
    expect(calls).toHaveLength(2)
  })

  test('sizes: code, arguments, results and value, and the error says which', async () => {
    expect(await errorOf(`//${'x'.repeat(70_000)}`)).toBe(
      'script-too-large: Error: The code of the script is too large: 68.4 KB, and at most 64 KB are allowed.',
    )
    expect(await errorOf('return "ä".repeat(40_000)')).toBe(
      'script-too-large: Error: The result of the script is too large: 78.1 KB, and at most 64 KB are allowed.',
    )
    expect(await errorOf('await tools.orders("x".repeat(2e6))')).toMatch(
      /^script-too-large: Error at 1:\d+: the argument of tools.orders is too large: 1.9 MB, and at most 1 MB are allowed/u,
    )
    const large = { answer: () => ({ value: JSON.stringify('x'.repeat(2 << 20)) }) }
    expect(await errorOf('await tools.orders()', large)).toMatch(/the result of .* is too large|script-too-large/u)
    expect(
      await errorOf('await Promise.all(Array.from({ length: 30 }, (_, i) => tools.orders(i + "x".repeat(1e6))))', {
        limits: { memory: 24 << 20 },
      }),
    ).toMatch(/too much at once/u)
  })

  test('console: it is cut, and says so once', async () => {
    const { console } = await run('for (let i = 0; i < 1e4; i++) console.log("12345678")', { limits: { console: 20 } })
    expect(console.map(({ text }) => text)).toEqual([
      '12345678',
      '12345678',
      '12',
      'The console is full: later lines are missing.',
    ])
  })

  test('recursion of many kinds is a RangeError that the script can catch', async () => {
    const results = await Promise.all(
      Object.entries(recursions).map(async ([kind, code]) => {
        const { value, error } = await run(
          `try { ${code}\n return "no error" } catch (e) { return e instanceof RangeError || e.name }`,
        )
        return [kind, value ?? error?.code]
      }),
    )
    const { pattern, ...rest } = Object.fromEntries(results) as Record<string, unknown>
    expect(new Set(Object.values(rest)), JSON.stringify(rest)).toEqual(new Set([true]))
    // Patterns have errors of their own.
    expect(pattern).toBe('SyntaxError')
  })
})

describe('a worker', () => {
  test('whose script is in a long native call ends, and its other scripts are dropped, to be run again', async () => {
    const own = createSandboxPool({ workers: 1, graceMs: 50 })
    const waiting = await own.start(scriptOf('return await tools.orders()'))
    await waiting.next()
    const native = 'const s = "a".repeat(2e6) + "b"\nreturn s.lastIndexOf("a".repeat(1e6) + "c")'
    expect((await runScript(own, native, { limits: { time: 50 } })).error?.code).toBe('script-timeout')
    await expect(waiting.settle(1, { value: '1' }, 0)).rejects.toThrow(ScriptDropped)
    await expect(waiting.settle(1, { value: '1' }, 0)).rejects.toMatchObject({ reason: 'worker' })
    expect((await runScript(own, 'return 1')).value).toBe(1)
    await own.close()
  })

  test('in which Node’s stripper failed is replaced', async () => {
    const own = createSandboxPool({ workers: 1 })
    const deep = `interface A { n: number }\nreturn ${'('.repeat(30_000)}`
    expect((await runScript(own, deep)).error).toMatchObject({
      code: 'bad-script',
      message: 'The script nests too deeply.',
    })
    expect((await runScript(own, 'interface A { n: number }\nreturn 1 as number')).value).toBe(1)
    await own.close()
  })

  test('starts with the first script, is shared by two, and ends with the pool', async () => {
    const started: unknown[] = []
    const seen = (worker: unknown) => started.push(worker)
    process.on('worker', seen)
    const own = createSandboxPool()
    expect([started.length, own.engine]).toEqual([0, 'quickjs-wasi 3.7.0'])
    const runs = await Promise.all(
      ['1', '2', '3', '4'].map((n) => own.start(scriptOf(`return await tools.orders(${n})`))),
    )
    await Promise.all(runs.map((each) => each.next()))
    expect(started).toHaveLength(2)
    process.off('worker', seen)
    const late = runs[0]!.settle(1, { value: '1' }, 0)
    await Promise.all([own.close(), expect(late).rejects.toMatchObject({ reason: 'closed' })])
    await expect(own.start(scriptOf('return 1'))).rejects.toMatchObject({ reason: 'closed' })
  })

  test('ends after a while without scripts, and another one starts when it is needed', async () => {
    const own = createSandboxPool({ idleMs: 0 })
    const ended = Promise.withResolvers<void>()
    process.once('worker', (worker) => worker.once('exit', () => ended.resolve()))
    expect((await runScript(own, 'return 1')).value).toBe(1)
    await ended.promise
    expect((await runScript(own, 'return 2')).value).toBe(2)
    await own.close()
  })
})

describe('VMs that are dropped', () => {
  test('of too many that wait, the one that waits longest is', async () => {
    const own = createSandboxPool({ waiting: 2, shortWaitMs: 0 })
    const runs: ScriptRun[] = []
    for (const n of [1, 2, 3]) await (runs[n - 1] = await own.start(scriptOf('return await tools.orders()'))).next()
    await expect(runs[0]!.settle(1, { value: '1' }, 0)).rejects.toMatchObject({ reason: 'waiting' })
    expect(await runs[2]!.settle(1, { value: '3' }, 0)).toMatchObject({ state: 'done', value: '3' })
    expect(await runs[1]!.settle(1, { value: '2' }, 0)).toMatchObject({ state: 'done', value: '2' })
    await own.close()
  })

  test('however many wait, one that has waited for a moment only is kept', async () => {
    const own = createSandboxPool({ waiting: 1, shortWaitMs: 60_000 })
    const runs = await Promise.all([1, 2, 3].map((n) => own.start(scriptOf(`return await tools.orders(${n})`))))
    await Promise.all(runs.map((each) => each.next()))
    for (const each of runs) expect(await each.settle(1, { value: '1' }, 0)).toMatchObject({ state: 'done' })
    await own.close()
  })

  test('of too many bytes likewise, but one may wait', async () => {
    const own = createSandboxPool({ waitingBytes: 1 })
    const runs: ScriptRun[] = []
    for (const n of [1, 2]) await (runs[n - 1] = await own.start(scriptOf('return await tools.orders()'))).next()
    const results = await Promise.allSettled(runs.map((each) => each.settle(1, { value: '1' }, 0)))
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    await own.close()
  })

  test('a script that is ended while it computes, by end() or by its signal, stops at once', async () => {
    const endless = scriptOf('for (;;);', { limits: { time: 60_000 } })
    const first = await pool.start(endless)
    const next = first.next()
    first.end()
    await expect(next).rejects.toMatchObject({ reason: 'ended' })
    const controller = new AbortController()
    const second = await pool.start(endless, controller.signal)
    controller.abort()
    await expect(second.next()).rejects.toMatchObject({ reason: 'ended' })
    const waiting = await pool.start(scriptOf('await tools.orders()'))
    await waiting.next()
    waiting.end()
    waiting.end()
    await expect(waiting.settle(1, { value: '1' }, 0)).rejects.toMatchObject({ reason: 'ended' })
    await expect(pool.start(endless, controller.signal)).rejects.toBe(controller.signal.reason)
    // Both workers are free again.
    expect(await Promise.all([valueOf('return 1'), valueOf('return 2'), valueOf('return 3')])).toEqual([1, 2, 3])
  })
})

test('the sandbox can run here', () => {
  expect(sandboxFault()).toBe(undefined)
})

describe('errors that a model can mend', () => {
  const table: [code: string, error: string | RegExp][] = [
    [
      '\nawait tools.serch({})',
      'script-error: TypeError at 2:7: tools.serch is not a tool. Did you mean search?\n2 | await tools.serch({})',
    ],
    ['tools.x', /^script-error: TypeError at 1:\d: tools.x is not a tool. There are: orders, search.\n/u],
    ['const a = []\na.fitler()', 'script-error: TypeError at 2:3: fitler is not a function\n2 | a.fitler()'],
    ['input.rows', /cannot read property 'rows' of null/u],
    ['totl = 1', /ReferenceError at 1:\d: 'totl' is not defined|totl is not defined/u],
    ['throw { a: 1 }', 'script-error: Error: The script threw {"a":1}'],
    ['await Promise.any([Promise.reject(new Error("a")), Promise.reject("b")])', /AggregateError.*Error: a; b/u],
    ['await new Promise(() => {})', /^script-stuck: Error: The script waits for a promise that nothing will settle/u],
    [
      'const fs = require("fs")',
      /^bad-script: ReferenceError at 1:12: Modules are not available in a script: call tools instead/u,
    ],
    ['const fs = await import("fs")', /^bad-script: ReferenceError.*Modules are not available/u],
    ['return 1n', /^bad-value: TypeError: the result is a BigInt; convert it/u],
    ['return { rows: [1, { "a b": new Map() }] }', /^bad-value: TypeError: the result.rows\[1\]\["a b"\] is a Map\./u],
    ['const a = { b: [] }; a.b.push(a); return a', /^bad-value: TypeError: the result.b\[0\] is a cycle/u],
    ['return { a: 1, b: { c: () => 1 } }', /^bad-value: TypeError: the result.b.c is a function\./u],
    ['return { e: [new Error("x"), new Set()] }', /^bad-value: TypeError: the result.e\[1\] is a Set\./u],
    ['return [tools.orders()]', /^bad-value: TypeError: the result\[0\] is a promise; await it/u],
    ['return [{}, [], new Uint8Array(1)]', /^bad-value: TypeError: the result\[2\] is bytes/u],
    ['return Symbol()', /^bad-value: TypeError: the result is a symbol/u],
    ['return { get a() { throw new Error("mine") } }', /^bad-value: TypeError: the result is no JSON: mine/u],
    [
      'let a = {}; for (let i = 0; i < 1e4; i++) a = { a }; return a',
      /^bad-value: TypeError: the result(\.a)+ is nested too deeply/u,
    ],
    ['await tools.orders({ id: 1n })', /^bad-value: TypeError at 1:\d+: the argument of tools.orders.id is a BigInt/u],
  ]
  test.each(table)('%s', async (code, expected) => {
    const error = await errorOf(code, { answer: (call: ScriptCall) => ({ value: call.input }) })
    if (typeof expected === 'string') expect(error).toBe(expected)
    else expect(error).toMatch(expected)
  })
})
