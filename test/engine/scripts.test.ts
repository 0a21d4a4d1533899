/** Scripts as steps and as tools of a model: what they are given, what the log has, what comes back. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { entriesOf, only, openEngine, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'

const orders = [
  { id: 'a', state: 'open', total: 5 },
  { id: 'b', state: 'paid', total: 7 },
  { id: 'c', state: 'open', total: 9 },
]
const order: ToolImplementation = {
  description: 'One order.',
  parameters: z.object({ id: z.string() }),
  execute: ({ id }: { id: string }) => {
    const found = orders.find((each) => each.id === id)
    if (found === undefined) throw new Error(`There is no order ${id}.`)
    return found
  },
}

const step = (code: string, more = '') => `
workflow:
  - id: totals
    type: script
    result: totals
    config:
      code: ${JSON.stringify(code)}
${more}`

async function ran(agent: string, options: Partial<EngineOptions> = {}, input: Record<string, unknown> = {}) {
  const engine = openEngine({ agents: { agent }, tools: { order }, ...options })
  const run = await engine.runtime.start('agent', input)
  const result = await run.result
  return { engine, run, result, entries: await entriesOf(engine.store, run.id) }
}

describe('a script step', () => {
  test('gets its input, calls tools, writes to its console, and returns its value', async () => {
    const code = `
const all: { state: string; total: number }[] = await Promise.all(input.ids.map((id: string) => tools.order({ id })))
const open = all.filter((each) => each.state === 'open')
console.log(open.length, 'open')
return { count: open.length, sum: open.reduce((sum, { total }) => sum + total, 0) }`
    const { result, entries } = await ran(
      step(code, '      input: { ids: $input.ids }\n      tools: [order]'),
      {},
      { ids: ['a', 'b', 'c'] },
    )
    expect(result).toMatchObject({ outcome: 'completed', output: { totals: { count: 2, sum: 14 } } })
    expect(only(entries, 'tool-call')).toMatchObject(
      ['a', 'b', 'c'].map((id, i) => ({
        step: 'main/totals/1',
        toolCallId: `script.main/totals.${i + 1}`,
        toolName: 'order',
        input: JSON.stringify({ id }),
        via: 'script',
      })),
    )
    expect(only(entries, 'tool-result').map(({ step: at }) => at)).toEqual([
      'main/totals/2',
      'main/totals/3',
      'main/totals/4',
    ])
    expect(only(entries, 'data')).toMatchObject([{ name: 'console', data: { level: 'log', text: '2 open' } }])
  })
})

describe('a script step that fails', () => {
  const failed = async (code: string, more = '') => {
    const { result, entries } = await ran(step(code, more))
    expect(result.outcome).toBe('failed')
    return { error: result.error!, entries }
  }

  test('what it throws fails the step, with the place in the script', async () => {
    const { error, entries } = await failed('const a = 1\nthrow new RangeError("too much")')
    expect(error).toMatchObject({ code: 'script-error', step: 'main/totals' })
    expect(error.message).toContain('RangeError at 2:')
    expect(error.message).toContain('2 | throw new RangeError("too much")')
    expect(only(entries, 'error')).toHaveLength(1)
  })

  test('a call that fails rejects, and can be caught', async () => {
    const { result } = await ran(
      step(
        'return tools.order({ id: "z" }).catch((error) => `${error.name}: ${error.message}`)',
        '      tools: [order]',
      ),
    )
    expect(result.output).toEqual({ totals: 'ToolError: There is no order z.' })
  })

  test('bad arguments and unknown tools are errors with a cure', async () => {
    const bad = await failed('await tools.order({ id: 3 })', '      tools: [order]')
    expect(bad.error.message).toContain("The arguments do not match the tool's schema")
    const unknown = await failed('await tools.ordr({ id: "a" })', '      tools: [order]')
    expect(unknown.error.message).toContain('tools.ordr')
    expect(unknown.error.message).toContain('Did you mean')
    expect(only(unknown.entries, 'tool-call')).toEqual([])
  })

  test('a value that does not match "output" fails it', async () => {
    const { error } = await failed('return { count: "two" }', '      output: { schema: { count: integer } }')
    expect(error).toMatchObject({ code: 'bad-output' })
    expect(error.message).toContain('count')
  })

  test('a call that it does not await is stopped, recorded and named', async () => {
    const aborted: unknown[] = []
    const slow: ToolImplementation = {
      parameters: z.object({}),
      execute: (_, { signal }) =>
        new Promise(() => signal.addEventListener('abort', () => aborted.push(signal.reason), { once: true })),
    }
    const { result, entries } = await ran(
      step('tools.slow({}); await tools.order({ id: "a" }); return 1', '      tools: [order, slow]'),
      {
        tools: { order, slow },
      },
    )
    expect(result).toMatchObject({ outcome: 'completed', output: { totals: 1 } })
    expect(aborted).toHaveLength(1)
    expect(only(entries, 'tool-result').find(({ toolName }) => toolName === 'slow')).toMatchObject({
      outcome: 'aborted',
    })
    const [warning] = only(entries, 'warning').filter(({ code }) => code === 'script-left-calls')
    expect(warning!.message).toContain('slow')
    expect(only(entries, 'error')).toEqual([])
  })

  test('a rejection that nobody awaits is a warning with its place', async () => {
    const { result, entries } = await ran(
      step('tools.order({ id: "z" }); await tools.order({ id: "a" }); return 1', '      tools: [order]'),
    )
    expect(result).toMatchObject({ outcome: 'completed' })
    expect(only(entries, 'warning')).toMatchObject([
      { code: 'script-unhandled', message: expect.stringContaining('There is no order z.') as string },
    ])
  })

  test('one more call than allowed rejects; the others wait in order', async () => {
    let [now, most] = [0, 0]
    const work: ToolImplementation = {
      parameters: z.object({}),
      execute: async () => {
        most = Math.max(most, ++now)
        await Promise.resolve()
        return now--
      },
    }
    const code =
      'const all = await Promise.allSettled(Array.from({ length: 6 }, () => tools.work({}))); return all.map(({ status }) => status)'
    const { result } = await ran(step(code, '      tools: [work]\n      limits: { calls: 5, parallel: 2 }'), {
      tools: { work },
    })
    expect(result.output).toEqual({ totals: [...Array<string>(5).fill('fulfilled'), 'rejected'] })
    expect(most).toBe(2)
  })
})

test('a stop ends a script and fires the signals of its open calls', async () => {
  const calls = [latch(), latch()]
  const aborted: string[] = []
  const wait: ToolImplementation = {
    parameters: z.object({ n: z.number() }),
    execute: ({ n }: { n: number }, { signal }) =>
      new Promise(() => {
        signal.addEventListener('abort', () => aborted.push(`call ${n}`), { once: true })
        calls[n]!.open()
      }),
  }
  const engine = openEngine({
    agents: { agent: step('await Promise.all([tools.wait({ n: 0 }), tools.wait({ n: 1 })])', '      tools: [wait]') },
    tools: { wait },
  })
  const run = await engine.runtime.start('agent', {})
  await Promise.all(calls.map(({ opened }) => opened))
  await engine.runtime.stop(run.id)
  expect(await run.result).toMatchObject({ outcome: 'aborted' })
  expect(aborted).toEqual(['call 0', 'call 1'])
  const results = only(await entriesOf(engine.store, run.id), 'tool-result')
  expect(results.map(({ outcome }) => outcome)).toEqual(['aborted', 'aborted'])
})

test('nothing but the code of every tool call runs a tool', () => {
  const root = new URL('../../src/', import.meta.url).pathname
  const callers = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) =>
      /^(?:engine|script)\/.*(?<!\.test)\.ts$/u.test(file) &&
      /\.execute!?\(/u.test(readFileSync(join(root, file), 'utf8')),
  )
  expect(callers).toEqual(['engine/tool-call.ts'])
})

describe('time, chance and secrets', () => {
  test('Date is the time of the newest entry that it has seen; two scripts have other numbers', async () => {
    const code = 'const a = Date.now(); await tools.order({ id: "a" }); return { a, b: Date.now(), lot: Math.random() }'
    const agent = `
workflow:
  - { id: one, type: script, result: one, config: { code: ${JSON.stringify(code)}, tools: [order] } }
  - { id: two, type: script, result: two, config: { code: ${JSON.stringify(code)}, tools: [order] } }`
    const { result, entries } = await ran(agent)
    type Seen = { a: number; b: number; lot: number }
    const { one, two } = result.output as { one: Seen; two: Seen }
    expect(one.a).toBe(only(entries, 'step-start').find(({ step: at }) => at === 'main/one/1')!.timestamp)
    expect(one.b).toBe(only(entries, 'tool-result')[0]!.timestamp)
    expect(one.lot).not.toBe(two.lot)
  })

  test('a script sees what the log has: a secret in a result is redacted for it, too', async () => {
    const secret = 'tok-4711-secret'
    const leak: ToolImplementation = { parameters: z.object({}), execute: () => ({ token: secret }) }
    const { result, entries } = await ran(
      step('const { token } = await tools.leak({}); return token', '      tools: [leak]'),
      {
        tools: { leak },
        secrets: { values: [secret] },
      },
    )
    expect(result.outcome).toBe('completed')
    expect(JSON.stringify(entries)).not.toContain(secret)
    expect(JSON.stringify(result.output)).not.toContain(secret)
  })

  test('`code` is no template: only a single reference is resolved, and a caller cannot write into a script', async () => {
    const code = 'const $input = 3; return `${$input} $input.text`'
    const { result } = await ran(step(code), {}, { text: 'return 666' })
    expect(result.output).toEqual({ totals: '3 $input.text' })
    const given = await ran(step('$input.code'), {}, { code: 'return 1 + 1' })
    expect(given.result.output).toEqual({ totals: 2 })
    const wrong = await ran(step('$input.code'), {}, { code: 5 })
    expect(wrong.result.error).toMatchObject({ code: 'bad-script' })
  })
})

describe('a code tool', () => {
  const ids = Array.from({ length: 12 }, (_, i) => `o${i}`)
  const lookup: ToolImplementation = {
    parameters: z.object({ id: z.string() }),
    execute: ({ id }: { id: string }) => ({ id, total: 2 }),
  }
  const agent = (tools: string) => `
workflow:
  - { id: answer, type: llm, config: { model: "script:m", stream: true, maxSteps: 20, tools: [${tools}] } }`
  const code = `const all = await Promise.all(${JSON.stringify(ids)}.map((id) => tools.lookup({ id })))
console.log('found', all.length)
return all.reduce((sum, { total }) => sum + total, 0)`

  test('twelve calls need two calls of the model; without it thirteen', async () => {
    const withCode = createTold((prompt) => {
      const [result] = resultsIn(prompt).values()
      return result === undefined
        ? [toolCall('c1', 'runCode', { code }), finish('tool-calls')]
        : [text(JSON.stringify(result)), finish()]
    })
    const { result, entries } = await ran(
      agent('{ code: [lookup] }'),
      { tools: { lookup }, scripts: { m: withCode } },
      { messages: [{ role: 'user', content: 'Sum?' }] },
    )
    expect(withCode.calls).toHaveLength(2)
    expect(JSON.parse((result as { text: string }).text)).toEqual({
      type: 'json',
      value: { value: 24, console: 'found 12' },
    })
    expect(
      only(entries, 'tool-call')
        .filter(({ via }) => via === 'script')
        .map(({ toolCallId }) => toolCallId),
    ).toEqual(ids.map((_, i) => `c1.${i + 1}`))
    // The conversation has the outer call and its result.
    expect(withCode.prompts[1]!.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])

    const without = createTold((prompt) => {
      const done = resultsIn(prompt).size
      return done < 12
        ? [toolCall(`c${done}`, 'lookup', { id: ids[done] }), finish('tool-calls')]
        : [text('24'), finish()]
    })
    const other = await ran(
      agent('lookup'),
      { tools: { lookup }, scripts: { m: without } },
      { messages: [{ role: 'user', content: 'Sum?' }] },
    )
    expect(without.calls).toHaveLength(13)
    expect(other.result).toMatchObject({ outcome: 'completed' })
  })

  test('a script that fails is a result that the model can mend: the place, the near name, and the calls that were made', async () => {
    const bad = 'await tools.lookup({ id: "o1" })\nawait tools.lokup({ id: "o2" })'
    const model = createTold((prompt) =>
      resultsIn(prompt).size === 0
        ? [toolCall('c1', 'runCode', { code: bad }), finish('tool-calls')]
        : [text('Ok.'), finish()],
    )
    const { result } = await ran(
      agent('{ code: [lookup] }'),
      { tools: { lookup }, scripts: { m: model } },
      { messages: [{ role: 'user', content: 'Go' }] },
    )
    expect(result.outcome).toBe('completed')
    const [output] = resultsIn(model.prompts[1]!).values() as Iterable<{ type: string; value: string }>
    expect(output!.type).toBe('error-text')
    expect(output!.value).toContain('at 2:')
    expect(output!.value).toContain('Did you mean')
    expect(output!.value).toContain('lookup({"id":"o1"}): done')
  })

  test('a budget of steps counts each call', async () => {
    const model = createTold(() => [toolCall('c1', 'runCode', { code }), finish('tool-calls')])
    const { result } = await ran(
      `budget: { steps: 6 }\n${agent('{ code: [lookup] }')}`,
      { tools: { lookup }, scripts: { m: model } },
      { messages: [{ role: 'user', content: 'Go' }] },
    )
    expect(result.outcome).toBe('budget-exceeded')
  })

  test('an agent can be called from a script', async () => {
    const helper = `
metadata: { description: Helps. }
workflow: [{ id: out, type: llm, config: { model: "script:h" } }]`
    const model = createTold((prompt) =>
      resultsIn(prompt).size === 0
        ? [
            toolCall('c1', 'runCode', { code: 'return (await tools.helper({ message: "Hi" })).length' }),
            finish('tool-calls'),
          ]
        : [text(JSON.stringify([...resultsIn(prompt).values()])), finish()],
    )
    const { result } = await ran(
      '',
      {
        agents: { agent: agent('{ code: [{ agent: helper }] }'), helper },
        scripts: { m: model, h: createTold(() => [text('12345'), finish()]) },
      },
      { messages: [{ role: 'user', content: 'Go' }] },
    )
    expect((result as { text: string }).text).toBe('[{"type":"json","value":{"value":5}}]')
  })
})
