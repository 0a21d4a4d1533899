/** Long results of tools: the log has them whole, a model gets the beginning, the end and a handle, and reads the rest with `readResult`. */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { readView } from '../../src/fold/read-view.ts'
import { readPrompt } from '../../src/fold/whole-prompt.ts'
import { finish, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import type { Entry, EntryOf } from '../../src/part/entry.ts'
import { deleteRun } from '../../src/record/delete.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { createEngine, entriesOf, only, openEngine, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold, cutAfter, resultsIn, type Told } from '../support/going-on.ts'

const orders = { orders: Array.from({ length: 3000 }, (_, id) => ({ id, note: `order number ${id}` })) }
const page = `${'start '.repeat(1000)}The needle is here. ${'middle '.repeat(10_000)}${'end '.repeat(500)}`
const anything = z.looseObject({})
const returning = (value: unknown): ToolImplementation => ({
  parameters: anything,
  idempotent: true,
  execute: () => value,
})
const tools = { fetchPage: returning(page), listOrders: returning(orders), small: returning('a small result') }

const yaml = (list = '[fetchPage, listOrders, small]', more = '', head = '') => `
recover: true
${head}
workflow:
  - { id: answer, type: llm, result: answer, config: { model: "script:m", stream: true, maxSteps: 20, messages: $input.messages, tools: ${list} ${more} } }
`
type Call = readonly [tool: string, input?: object]

/** Some protocols have the files of a tool in a message of the user. */
const isAsked = ({ role, content }: LanguageModelV4Prompt[number]) =>
  role === 'user' && !JSON.stringify(content).includes('Files that the tool')

/** Calls these tools one after the other, then says `done`. The calls of each turn have ids of their own. */
function calling(calls: readonly Call[] | ((prompt: LanguageModelV4Prompt) => readonly Call[]), most = 150_000): Told {
  return createTold((prompt): ScriptStep[] => {
    // What the SDK is given is what the provider gets: none of our own notes.
    for (const message of prompt) {
      if (message.role === 'tool') for (const part of message.content) expect(part).not.toHaveProperty('handle')
    }
    expect(JSON.stringify(prompt).length).toBeLessThan(most)
    const list = typeof calls === 'function' ? calls(prompt) : calls
    const turn = prompt.filter(isAsked).length
    const n = prompt.slice(prompt.findLastIndex(isAsked)).filter(({ role }) => role === 'tool').length
    const next = list[n]
    if (next === undefined) return [text('done'), finish()]
    const id = `t${turn}c${n}`
    return [toolCall(resultsIn(prompt).has(id) ? `${id}+` : id, next[0], next[1] ?? {}), finish('tool-calls')]
  })
}

const said = (prompt: LanguageModelV4Prompt, id: string) => {
  const output = resultsIn(prompt).get(id) as { value: unknown }
  return typeof output.value === 'string' ? output.value : JSON.stringify(output.value)
}
/** The handles that a model has seen, in order. */
const handles = (prompt: LanguageModelV4Prompt) =>
  [...resultsIn(prompt).values()].flatMap(
    (output) => /It is kept as (res_\w+)/u.exec(JSON.stringify(output))?.[1] ?? [],
  )

const question = { messages: [{ role: 'user', content: 'Go' }] }
const open = (model: Told, agent = yaml(), more: Partial<EngineOptions> = {}) =>
  openEngine({ agents: { a: agent }, tools, scripts: { m: model }, ...more })

async function run(engine: Engine, input: Record<string, unknown> = question, options = {}) {
  const started = await engine.runtime.start('a', input, options)
  const result = await started.result
  expect(result).toMatchObject({ outcome: 'completed' })
  return { id: started.id, result, entries: await entriesOf(engine.store, started.id) }
}

const resultOf = (entries: readonly Entry[], id: string) =>
  only(entries as Entry[], 'tool-result').find(({ toolCallId }) => toolCallId === id)!

const textOf = ({ result }: EntryOf<'tool-result'>) => (typeof result === 'string' ? result : JSON.stringify(result))

describe('a long result', () => {
  test('is whole in the log and in variables; the model gets 2,000 and 1,000 characters, the size, the shape and the handle', async () => {
    const model = calling([['listOrders'], ['fetchPage'], ['small']])
    const engine = open(model, yaml(undefined, '', 'return: { results: $answer.toolResults }'))
    const { entries, result } = await run(engine)
    const [list, fetched] = ['t1c0', 't1c1'].map((id) => resultOf(entries, id))
    expect([list!.result, fetched!.result]).toEqual([orders, page])
    const { results } = result.output as { results: { output: unknown }[] }
    expect(results.map(({ output }) => output)).toEqual([orders, page, 'a small result'])
    const last = model.prompts.at(-1)!
    const json = JSON.stringify(orders)
    for (const words of [
      `res_${list!.seq}:`,
      json.slice(0, 2000),
      json.slice(-1000),
      '{orders: [3000 × {id: number, note: string}]}',
    ]) {
      expect(said(last, 't1c0')).toContain(words)
    }
    expect(said(last, 't1c0').length).toBeLessThan(4096)
    expect(said(last, 't1c1')).toContain(`res_${fetched!.seq}:`)
    expect(said(last, 't1c1')).not.toContain('Its shape')
    expect(said(last, 't1c2')).toBe('a small result')
    // Each prompt notes only what it is the first to be told shortened.
    expect(only(entries, 'prompt').map(({ shortened }) => shortened)).toEqual([
      undefined,
      [`res_${list!.seq}`],
      [`res_${fetched!.seq}`],
      undefined,
    ])
    expect(JSON.stringify(only(entries, 'prompt'))).not.toContain('order number')
  })

  test('each call is told the beginning of the call before, and readResult is offered from the first handle on', async () => {
    const model = calling([['small'], ['fetchPage'], ['listOrders'], ['small']])
    await run(open(model))
    expect(model.calls.map((call) => call.tools?.map(({ name }) => name))).toEqual([
      ['fetchPage', 'listOrders', 'small'],
      ['fetchPage', 'listOrders', 'small'],
      ...Array.from({ length: 3 }, () => ['fetchPage', 'listOrders', 'small', 'readResult']),
    ])
    for (const [i, prompt] of model.prompts.entries()) {
      if (i > 0) expect(prompt.slice(0, model.prompts[i - 1]!.length)).toEqual(model.prompts[i - 1])
    }
  })

  test('the prompt that the page reads is what the model was told', async () => {
    const model = calling([['fetchPage'], ['small'], ['listOrders']])
    const engine = open(model)
    const { id, entries } = await run(engine)
    for (const [i, { step }] of only(entries, 'prompt').entries()) {
      const { messages } = (await readPrompt(engine.store.log, id, step))!
      const told = new Map(
        [...resultsIn(model.prompts[i]!)].map(([call, output]) => [call, (output as { value: unknown }).value]),
      )
      const read = messages.flatMap((message) => (message.role === 'tool' ? message.content : []))
      expect(new Map(read.map(({ toolCallId, output }) => [toolCallId, (output as { value: unknown }).value]))).toEqual(
        told,
      )
    }
  })

  test('`inline` of a tool comes before that of the step; none tells all', async () => {
    const told = async (list: string, more: string) => {
      const model = calling([['fetchPage'], ['listOrders']], 1_000_000)
      await run(open(model, yaml(list, more)))
      return ['t1c0', 't1c1'].map((id) => said(model.prompts.at(-1)!, id).includes('characters left out'))
    }
    expect(await told('[fetchPage, listOrders]', ', inline: none')).toEqual([false, false])
    expect(await told('[{ name: fetchPage, inline: 200k }, listOrders]', '')).toEqual([false, true])
    expect(await told('[{ name: fetchPage, inline: 4k }, listOrders]', ', inline: none')).toEqual([true, false])
    expect(await told('[fetchPage, listOrders]', ', inline: 80000')).toEqual([false, true])
  })

  test('files stay parts', async () => {
    const image = { type: 'image', data: 'iVBORw0KGgo'.repeat(5000), mimeType: 'image/png' }
    const model = calling([['shot']])
    const shot = returning([{ type: 'text', text: page }, image])
    const { entries } = await run(open(model, yaml('[shot]'), { tools: { shot } }))
    expect(resultOf(entries, 't1c0').result).toEqual([{ type: 'text', text: page }, image])
    const prompt = model.prompts.at(-1)!
    expect(said(prompt, 't1c0')).toContain(`res_${resultOf(entries, 't1c0').seq}:`)
    const files = prompt.flatMap(({ content }) =>
      typeof content === 'string' ? [] : content.filter(({ type }) => type === 'file'),
    )
    expect(files).toMatchObject([{ mediaType: 'image/png' }])
  })

  test('of an edited call says with which arguments it ran, and the read has the same', async () => {
    const model = calling((prompt) => [['fetchPage'], ['readResult', { handle: handles(prompt)[0] }]])
    const fetchPage = { ...returning(page), approval: true }
    const engine = open(model, yaml('[fetchPage]'), { tools: { fetchPage } })
    const { id, result } = await engine.runtime.start('a', question)
    expect(await result).toMatchObject({ outcome: 'suspended' })
    const [request] = only(await entriesOf(engine.store, id), 'request')
    const input = { url: 'other' }
    await engine.runtime.answer(id, request!.requestId, { kind: 'approval', approved: true, input })
    expect(await (await engine.runtime.open(id))!.result).toMatchObject({ outcome: 'completed' })
    const words = 'The call was approved with other arguments: {"url":"other"}. Its result: start'
    expect(said(model.prompts.at(-1)!, 't1c0')).toContain(words)
    expect(textOf(resultOf(await entriesOf(engine.store, id), 't1c1'))).toContain(words)
  })

  test('that is an error is shortened as well', async () => {
    const model = calling([['fail']])
    const fail: ToolImplementation = {
      parameters: anything,
      execute: () => {
        throw new Error(page)
      },
    }
    await run(open(model, yaml('[fail]'), { tools: { fail } }))
    expect(resultsIn(model.prompts.at(-1)!).get('t1c0')).toMatchObject({
      type: 'error-text',
      value: expect.stringContaining('It is kept as res_') as string,
    })
  })

  test('a script gets it whole; what the script returns is told like any other result', async () => {
    const code = 'const { orders } = await tools.listOrders({}); return orders.slice(0, 1200)'
    const model = calling([
      ['runCode', { code }],
      ['runCode', { code: 'return (await tools.listOrders({})).orders.length' }],
    ])
    await run(open(model, yaml('[{ code: [listOrders] }]')))
    const last = model.prompts.at(-1)!
    expect(said(last, 't1c0')).toContain('It is kept as res_')
    expect(said(last, 't1c1')).toContain('3000')
  })
})

describe('readResult', () => {
  /** Fetches a page and the orders, then reads with each input. `$page` and `$orders` stand for their handles. */
  async function reads(...inputs: Record<string, unknown>[]) {
    const model = calling((prompt) => {
      const [pageHandle, ordersHandle] = handles(prompt)
      const handle = (name: unknown) => (name === '$page' ? pageHandle : name === '$orders' ? ordersHandle : name)
      return [
        ['fetchPage'],
        ['listOrders'],
        ...inputs.map((input): Call => ['readResult', { ...input, handle: handle(input['handle']) }]),
      ]
    })
    const { entries } = await run(open(model))
    return { model, entries, results: inputs.map((_, i) => resultOf(entries, `t1c${i + 2}`)) }
  }
  const one = async (input: Record<string, unknown>) => (await reads(input)).results[0]!

  test('returns pieces of 16 KB that make the whole, and none of them is shortened', async () => {
    const size = 16 * 1024
    const froms = Array.from({ length: Math.ceil(page.length / size) }, (_, i) => i * size)
    const { results, model } = await reads(...froms.map((from) => ({ handle: '$page', from })))
    const pieces = results.map(textOf)
    expect(pieces.map((piece) => piece.slice(0, piece.lastIndexOf('\n\n['))).join('')).toBe(page)
    expect(pieces[0]).toContain(`The next piece: from: ${size}.`)
    expect(pieces.at(-1)).toContain('This is the last piece.')
    const last = model.prompts.at(-1)!
    for (const [i, piece] of pieces.entries()) expect(said(last, `t1c${i + 2}`)).toBe(piece)
    expect(handles(last)).toHaveLength(2)
  })

  test('is not shortened, however little the step tells', async () => {
    const model = calling((prompt) => {
      const [handle] = handles(prompt)
      return [['fetchPage'], ['readResult', { handle }], ['readResult', { handle, from: 16_384 }]]
    })
    const { entries } = await run(open(model, yaml(undefined, ', inline: 4k')))
    const last = model.prompts.at(-1)!
    for (const id of ['t1c1', 't1c2']) expect(said(last, id)).toBe(resultOf(entries, id).result)
    expect(handles(last)).toHaveLength(1)
  })

  test('finds words, whatever their case, and says where', async () => {
    expect((await one({ handle: '$page', find: 'THE NEEDLE' })).result).toMatch(/^\[at 6000\] ….*The needle is here/u)
    const many = textOf(await one({ handle: '$page', find: 'middle' }))
    expect(many.length).toBeLessThan(16 * 1024)
    expect(many).toMatch(/\[20 places .* More: from: \d+\.\]$/u)
    expect((await one({ handle: '$page', find: 'a.b*(' })).isError).toBe(true)
  })

  test('reads the value at a path of JSON', async () => {
    const { results } = await reads(
      { handle: '$orders', path: 'orders[2999]' },
      { handle: '$orders', path: '$.orders[-1].note' },
      { handle: '$orders', path: 'orders', from: 16_000 },
    )
    expect(results.map(textOf).slice(0, 2)).toEqual([JSON.stringify(orders.orders[2999]), 'order number 2999'])
    expect(textOf(results[2]!)).toContain('of orders of res_')
  })

  test.each([
    [
      'an unknown handle',
      { handle: 'res_999' },
      /no result "res_999" here\..*The long results of this conversation: res_\d+ \(fetchPage, 78,020 characters\), res_\d+ \(listOrders/u,
    ],
    [
      'a path that fits nothing',
      { handle: '$orders', path: 'order[1]' },
      /nothing at "order\[1\]": it has the keys orders\. Its shape: \{orders/u,
    ],
    [
      'an index beyond the end',
      { handle: '$orders', path: 'orders[3000].id' },
      /"orders" is a list of 3000, from \[0\] to \[2999\]/u,
    ],
    ['a path into text', { handle: '$page', path: 'a' }, /no JSON/u],
    ['no hit', { handle: '$page', find: 'haystack' }, /"haystack" does not occur in res_\d+ \(78,020 characters\)/u],
    [
      'a place behind the end',
      { handle: '$page', from: 900_000 },
      /"from" is 900000, but res_\d+ has 78,020 characters/u,
    ],
    ['a negative place', { handle: '$page', from: -1 }, /arguments do not match/u],
  ])('%s is a result for the model, with what exists', async (_, input, words) => {
    const { isError, result } = await one(input)
    expect(isError).toBe(true)
    expect(result).toMatch(words)
  })

  test('is not offered without a handle, nor known', async () => {
    const model = calling([['small'], ['readResult', { handle: 'res_1' }]])
    const { entries } = await run(open(model))
    expect(resultOf(entries, 't1c1').result).toContain('There is no tool "readResult"')
  })

  test('replaces a tool of the request with its name, with a warning', async () => {
    const model = calling((prompt) => [['fetchPage'], ['readResult', { handle: handles(prompt)[0] }]])
    const { entries } = await run(open(model), {
      ...question,
      tools: [{ name: 'readResult', parameters: { type: 'object' } }],
    })
    expect(resultOf(entries, 't1c1').result).toContain('start start')
    expect(only(entries, 'warning').map(({ code }) => code)).toEqual(['tool-name-taken'])
  })
})

describe('the thread', () => {
  const server = yaml(undefined, '', 'history: server')
  const asked = (content: string) => ({ messages: [{ role: 'user', content }] })

  test('a later run is told the same, reads what an earlier one has, and its own handles differ', async () => {
    const model = calling((prompt) => {
      const found = handles(prompt)
      const turn = prompt.filter(({ role }) => role === 'user').length
      return turn === 1
        ? [['fetchPage']]
        : [['fetchPage'], ...found.map((handle): Call => ['readResult', { handle, from: 6000 }])]
    })
    const engine = open(model, server)
    await run(engine, asked('one'), { threadId: 't' })
    const { entries } = await run(engine, asked('two'), { threadId: 't' })
    const found = handles(model.prompts.at(-1)!)
    expect(new Set(found).size).toBe(2)
    expect(model.prompts[2]!.slice(0, model.prompts[1]!.length)).toEqual(model.prompts[1])
    for (const id of ['t2c1', 't2c2']) expect(textOf(resultOf(entries, id))).toMatch(/^The needle/u)
    // What was read before is in no prompt of the log.
    expect(JSON.stringify(only(entries, 'prompt'))).not.toContain('The needle')
    const third = await run(engine, asked('three'), { threadId: 't' })
    expect(handles(model.prompts.at(-1)!).slice(0, 2)).toEqual(found)
    expect(textOf(resultOf(third.entries, 't3c3'))).toContain('The needle')
  })

  test('a client that keeps the history has the same', async () => {
    const model = calling((prompt) => {
      const [handle] = handles(prompt)
      return handle === undefined ? [['fetchPage']] : [['readResult', { handle, from: 6000 }]]
    })
    const engine = open(model)
    const first = await run(engine, asked('one'), { threadId: 't' })
    const { messages } = (await readView(engine.store, first.id))!
    const { entries } = await run(
      engine,
      { messages: [...asked('one').messages, ...messages, ...asked('two').messages] },
      { threadId: 't' },
    )
    expect(textOf(resultOf(entries, 't2c0'))).toMatch(/^The needle/u)
  })

  test('the result of a client’s own tool that no log has is named by its call', async () => {
    const model = calling((prompt) =>
      handles(prompt).length > 0 ? [['readResult', { handle: handles(prompt)[0], from: 6000 }]] : [],
    )
    const output = { type: 'text', value: page }
    const call = {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'x1', toolName: 'pageOf', input: {} }],
    }
    const given = { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'x1', toolName: 'pageOf', output }] }
    const { entries } = await run(open(model), {
      messages: [...asked('one').messages, call, given, ...asked('two').messages],
    })
    expect(handles(model.prompts[0]!)).toEqual(['res_in_x1'])
    expect(textOf(resultOf(entries, 't2c0'))).toMatch(/^The needle/u)
  })

  test('in another thread the handle does not exist', async () => {
    let foreign = ''
    const model = calling((prompt) => {
      foreign = handles(prompt)[0] ?? foreign
      return prompt.some(({ content }) => JSON.stringify(content).includes('other'))
        ? [['readResult', { handle: foreign }], ['listOrders'], ['readResult', { handle: `${foreign}_abc123` }]]
        : [['fetchPage']]
    })
    const engine = open(model, server)
    await run(engine, asked('one'), { threadId: 't' })
    // The other thread has a handle of its own, so the tool is offered there.
    const { entries } = await run(engine, asked('other'), { threadId: 'u' })
    expect(textOf(resultOf(entries, 't1c0'))).toContain('There is no tool')
    expect(textOf(resultOf(entries, 't1c2'))).toContain(`There is no result "${foreign}_abc123" here`)
  })

  test('nor does one of a later turn of another thread', async () => {
    let foreign = ''
    const model = calling((prompt) => {
      if (!JSON.stringify(prompt).includes('other')) return [['fetchPage']]
      return [['listOrders'], ['readResult', { handle: foreign }]]
    })
    const engine = open(model, server)
    await run(engine, asked('one'), { threadId: 't' })
    await run(engine, asked('two'), { threadId: 't' })
    foreign = handles(model.prompts.at(-1)!)[1]!
    expect(foreign).toMatch(/^res_\d+_[a-z0-9]{6}$/u)
    const { entries } = await run(engine, asked('other'), { threadId: 'u' })
    expect(resultOf(entries, 't1c1')).toMatchObject({ isError: true })
    const own = await run(engine, asked('the other side'), { threadId: 't' })
    expect(textOf(resultOf(own.entries, 't3c1'))).toContain('start start')
  })

  test('a handle is read that the messages do not have any more, as behind a summary', async () => {
    const model = calling((prompt) =>
      JSON.stringify(prompt).includes('summary')
        ? [['listOrders'], ['readResult', { handle: first, from: 6000 }]]
        : [['fetchPage']],
    )
    let first = ''
    const engine = open(model, server, {
      agents: {
        a: server,
        b: server.replace('$input.messages', '[{ role: user, content: a summary }]'),
      },
    })
    await run(engine, asked('one'), { threadId: 't' })
    first = handles(model.prompts.at(-1)!)[0]!
    await run(engine, asked('two'), { threadId: 't' })
    const later = await engine.runtime.start('b', asked('three'), { threadId: 't' })
    expect(await later.result).toMatchObject({ outcome: 'completed' })
    expect(textOf(resultOf(await entriesOf(engine.store, later.id), 't1c1'))).toMatch(/^The needle/u)
  })

  test('where retention has removed the run, the tool says so', async () => {
    let first = ''
    const model = calling((prompt) => {
      first ||= handles(prompt)[0] ?? ''
      const turn = prompt.filter(isAsked).length
      return first === '' ? [['fetchPage']] : [['readResult', { handle: first, from: 6000 * turn }]]
    })
    const engine = open(model, server)
    const { id } = await run(engine, asked('one'), { threadId: 't' })
    await run(engine, asked('two'), { threadId: 't' })
    await deleteRun(engine.store, id)
    const { entries } = await run(engine, asked('three'), { threadId: 't' })
    const [result] = only(entries, 'tool-result')
    expect(result!.isError).toBe(true)
    expect(result!.result).toBe(
      `The result ${first} is not kept any more: its run was deleted. There are no long results in this conversation.`,
    )
  })

  test('a fork reads what its source has, and what the run before it has', async () => {
    const model = calling((prompt) => {
      const turn = prompt.filter(({ role }) => role === 'user').length
      if (turn === 1) return [['fetchPage']]
      return [['listOrders'], ...handles(prompt).map((handle): Call => ['readResult', { handle, find: 'n' }])]
    })
    const engine = open(model, server)
    await run(engine, asked('one'), { threadId: 't' })
    const { id, entries } = await run(engine, asked('two'), { threadId: 't' })
    const [before] = handles(model.prompts.at(-1)!)
    for (const { seq, step, type } of entries) {
      if (type !== 'step-start' || !step.startsWith('main/answer/')) continue
      const fork = await engine.runtime.fork(id, { at: seq })
      expect(await fork.result).toMatchObject({ outcome: 'completed', text: 'done' })
      const found = await entriesOf(engine.store, fork.id)
      expect(found.filter(({ type: each }) => each === 'tool-result')).toHaveLength(3)
      expect(only(found, 'tool-result').every(({ isError }) => isError !== true)).toBe(true)
      expect(handles(model.prompts.at(-1)!)[0]).toBe(before)
    }
  })
})

describe('other steps', () => {
  test('a router and the step that answers: both may read', async () => {
    const model = createTold((prompt): ScriptStep[] => {
      const results = resultsIn(prompt)
      const [handle] = handles(prompt)
      const isRouter = prompt.some(({ role, content }) => role === 'system' && content === 'Route.')
      if (isRouter) {
        return results.size === 0 ? [toolCall('r1', 'fetchPage'), finish('tool-calls')] : [text('enough'), finish()]
      }
      if (results.has('a1')) return [text(said(prompt, 'a1').slice(0, 10)), finish()]
      return [toolCall('a1', 'readResult', { handle, from: 6000 }), finish('tool-calls')]
    })
    const agent = `
workflow:
  - { id: route, type: router, result: route, config: { model: "script:m", system: Route., tools: [fetchPage] } }
  - { id: answer, type: llm, config: { model: "script:m", stream: true, messages: $route.messages } }`
    const { result } = await run(open(model, agent))
    expect(result.text).toBe('The needle')
  })

  test('a router that repeats a call is told that its result stands above', async () => {
    const model = createTold((prompt): ScriptStep[] => {
      const n = resultsIn(prompt).size
      return n < 2 ? [toolCall(`r${n}`, 'fetchPage'), finish('tool-calls')] : [text('enough'), finish()]
    })
    const agent = 'workflow: [{ id: route, type: router, config: { model: "script:m", tools: [fetchPage] } }]'
    const { entries } = await run(open(model, agent))
    expect(resultOf(entries, 'r1').result).toMatch(/is not run again\. Its result was: the one above$/u)
  })

  test('an agent that is called sees what it was told of its caller’s conversation, and reads it; it sees nothing else', async () => {
    let callers = ''
    const model = createTold((prompt): ScriptStep[] => {
      const results = resultsIn(prompt)
      callers = handles(prompt)[0] ?? callers
      if (prompt.some(({ role, content }) => role === 'system' && content === 'Inner.')) {
        return results.has('i1')
          ? [text(`${said(prompt, 'i1').slice(0, 10)}`), finish()]
          : [toolCall('i1', 'readResult', { handle: callers, from: 6000 }), finish('tool-calls')]
      }
      if (results.has('o2')) return [text('done'), finish()]
      return results.has('o1')
        ? [toolCall('o2', 'inner', { message: 'read it' }), finish('tool-calls')]
        : [toolCall('o1', 'fetchPage'), finish('tool-calls')]
    })
    const inner = `
workflow: [{ id: say, type: llm, config: { model: "script:m", stream: true, system: Inner., messages: $input.messages, tools: [small] } }]`
    const found = async (tool: string) => {
      const engine = open(model, yaml(`[fetchPage, ${tool}]`), { agents: { a: yaml(`[fetchPage, ${tool}]`), inner } })
      return resultOf((await run(engine)).entries, 'o2').result
    }
    expect(await found('{ agent: inner, history: true }')).toBe('The needle')
    // It has no handle in its own conversation, so it is not even offered the tool.
    expect(await found('{ agent: inner }')).toBe('There is n')
  })

  test('an agent with handles of its own has none of its caller', async () => {
    let callers = ''
    const model = createTold((prompt): ScriptStep[] => {
      const results = resultsIn(prompt)
      if (prompt.some(({ role, content }) => role === 'system' && content === 'Inner.')) {
        if (!results.has('i1')) return [toolCall('i1', 'listOrders'), finish('tool-calls')]
        if (!results.has('i2')) return [toolCall('i2', 'readResult', { handle: callers }), finish('tool-calls')]
        return [text(said(prompt, 'i2')), finish()]
      }
      callers = handles(prompt)[0] ?? ''
      if (results.has('o2')) return [text('done'), finish()]
      return results.has('o1')
        ? [toolCall('o2', 'inner', { message: 'read it' }), finish('tool-calls')]
        : [toolCall('o1', 'fetchPage'), finish('tool-calls')]
    })
    const inner = `
workflow: [{ id: say, type: llm, config: { model: "script:m", stream: true, system: Inner., messages: $input.messages, tools: [listOrders] } }]`
    const engine = open(model, '', { agents: { a: yaml('[fetchPage, { agent: inner }]'), inner } })
    expect(resultOf((await run(engine)).entries, 'o2').result).toContain(`There is no result "${callers}" here`)
  })
})

describe('after a crash', () => {
  test('at every entry of a run with handles, the run ends the same', async () => {
    const model = () =>
      calling((prompt) => {
        const [handle] = handles(prompt)
        return [
          ['fetchPage'],
          ['readResult', { handle, find: 'needle' }],
          ['listOrders'],
          ['readResult', { handle: handles(prompt)[1], path: 'orders[7]' }],
        ]
      })
    const options = { agents: { a: yaml() }, tools }
    const first = createEngine({ ...options, scripts: { m: model() } })
    const { entries, id } = await run(first)
    await first.close()
    for (let k = 1; k < entries.length; k++) {
      const told = model()
      const engine = await cutAfter(entries, k, { ...options, scripts: { m: told } })
      try {
        await engine.runtime.recover()
        expect(await (await engine.runtime.open(id))!.result, `cut after ${k}`).toMatchObject({
          outcome: 'completed',
          text: 'done',
        })
        const found = only(await entriesOf(engine.store, id), 'tool-result')
        expect(found.map(({ isError }) => isError)).toEqual([false, false, false, false])
        expect(found.at(-1)!.result).toBe(JSON.stringify(orders.orders[7]))
      } finally {
        await engine.close()
      }
    }
  })
})

test('a result of 8 MB is one entry, and no prompt has it, in its run and the next ones', async () => {
  const huge = Array.from({ length: 8000 }, (_, i) => `${i} ${'x'.repeat(1000)}`)
  const model = calling((prompt) => {
    const [handle] = handles(prompt)
    if (prompt.length === 1) return []
    return handle === undefined ? [['huge']] : [['readResult', { handle, path: '[7999]' }]]
  })
  const engine = open(model, yaml('[huge]', '', 'history: server'), { tools: { huge: returning(huge) } })
  onTestFinished(() => engine.close())
  for (const content of ['zero', 'one', 'two', 'three']) {
    const { entries } = await run(engine, { messages: [{ role: 'user', content }] }, { threadId: 't' })
    const large = entries.filter((entry) => JSON.stringify(entry).length > 100_000)
    expect(large.map(({ type }) => type)).toEqual(content === 'one' ? ['tool-result'] : [])
    // The turn before it is told as well: the history is not cut.
    expect(only(entries, 'warning')).toEqual([])
    if (content === 'two' || content === 'three') expect(only(entries, 'tool-result')[0]!.result).toBe(huge[7999])
  }
})
