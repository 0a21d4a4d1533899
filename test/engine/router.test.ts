/** `router`: a model calls tools, hands over, and another step answers; what it did is recorded and never the answer. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import type { RouterResult } from '../../src/engine/steps/router.ts'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { textWire } from '../../src/wire/text/text.ts'
import { uiWire } from '../../src/wire/ui/ui.ts'
import { createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { pairingFault } from '../support/going-on.ts'

const engines: Engine[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const engine of engines.splice(0)) await engine.close()
})

const messages = [{ role: 'user', content: 'Hi' }]
const any = z.looseObject({})
const respond = (input: unknown = {}, id = 'r') => toolCall(id, 'respond', input)
const calls = (...steps: ScriptStep[]) => [...steps, finish('tool-calls')]

/** A router with further config lines, then the step that answers. */
function routed(config = '', answer = ''): string {
  return `
workflow:
  - id: route
    type: router
    result: routed
    config:
      model: "script:router"
${config.replaceAll(/^/gmu, '      ')}
  - id: answer
    type: llm
    config:
      model: "script:answer"
      stream: true
      messages: "$routed.messages"
${answer.replaceAll(/^/gmu, '      ')}
return: "$routed"
`
}

interface Setting extends Partial<EngineOptions> {
  config?: string
  answer?: string
  script: ScriptStep[][]
  answers?: ScriptStep[][]
}

function open({ config, answer, script, answers = [[text('The answer.'), finish()]], ...rest }: Setting) {
  const router = createScriptedModel(script)
  const answering = createScriptedModel(answers)
  const engine = createEngine({
    agents: { a: routed(config, answer) },
    scripts: { router, answer: answering },
    ...rest,
  })
  engines.push(engine)
  return { engine, router, answering, start: () => engine.runtime.start('a', { messages }) }
}

async function whole(setting: Setting) {
  const { engine, router, answering, start } = open(setting)
  const run = await start()
  const result = await run.result
  expect(result).toMatchObject({ outcome: 'completed', text: 'The answer.' })
  const entries = await entriesOf(engine.store, run.id)
  for (const { options } of [...router.calls, ...answering.calls]) expect(pairingFault(options.prompt)).toBeUndefined()
  const results = only(entries, 'tool-result')
  return { entries, results, routed: result.output as RouterResult, router, answering }
}

const square: ToolImplementation = {
  description: 'squares',
  parameters: z.object({ n: z.number() }),
  execute: ({ n }: { n: number }) => ({ square: n * n }),
}

test('calls tools, hands over with `respond`, and another step answers: what is told when, and to whom', async () => {
  const { entries, routed, router, answering } = await whole({
    config: 'system: "You route."\ntools: [square]',
    tools: { square },
    script: [
      calls(text('Let me see.'), toolCall('c1', 'square', { n: 3 })),
      calls(text('Now hand over.'), respond({ reason: 'known', notes: 'be kind', more: 1 })),
    ],
  })
  const told = entries.filter(({ type }) => /^(prompt|tool-call|tool-result|step-start|answer-end)$/u.test(type))
  expect(told.map(({ type, step }) => `${type} ${step}`.trim())).toEqual([
    'step-start main/route',
    'step-start main/route/1',
    'prompt main/route/1',
    'tool-call main/route/1',
    'step-start main/route/2',
    'tool-result main/route/2',
    'step-start main/route/3',
    'prompt main/route/3',
    'tool-call main/route/3',
    'tool-result main/route/3',
    'step-start main/answer',
    'step-start main/answer/1',
    'prompt main/answer/1',
    'answer-end',
  ])
  expect(only(entries, 'prompt').map(({ stage }) => stage)).toEqual(['router', 'router', 'response'])
  expect(only(entries, 'step-start').filter(({ answer }) => answer)).toMatchObject([{ step: 'main/answer' }])
  expect(only(entries, 'tool-result')).toMatchObject([
    { toolCallId: 'c1', result: { square: 9 }, isError: false },
    { toolCallId: 'r', result: 'Handed over.', isError: false },
  ])

  const conversation = [
    ...messages,
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'Let me see.' },
        { type: 'tool-call', toolCallId: 'c1', toolName: 'square', input: { n: 3 } },
      ],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'c1', toolName: 'square', output: { type: 'json', value: { square: 9 } } },
      ],
    },
  ]
  expect(routed).toMatchObject({
    messages: conversation,
    context: 'square {"n":3} gave: {"square":9}',
    text: 'Now hand over.',
    respond: { reason: 'known', notes: 'be kind' },
    toolCalls: [{ toolCallId: 'c1', toolName: 'square', input: { n: 3 } }],
    toolResults: [{ toolCallId: 'c1', output: { square: 9 }, isError: false }],
    steps: [{ text: 'Let me see.' }, { text: 'Now hand over.', toolCalls: [] }],
    finishReason: 'respond',
    usage: { inputTokens: 20, outputTokens: 10 },
  })
  expect(only(entries, 'prompt').at(-1)!.messages).toEqual(conversation)
  // Whatever else is offered, the router has its way to hand over; the step that answers knows nothing of it.
  expect(router.calls[0]!.options.tools).toMatchObject([{ name: 'square' }, { name: 'respond' }])
  expect(JSON.stringify(answering.calls[0]!.options)).not.toContain('respond')
})

test('no wire for clients tells anything of it', async () => {
  const { entries } = await whole({
    config: 'tools: [square]',
    tools: { square },
    script: [calls(text('Words of the router.'), toolCall('c1', 'square', { n: 3 })), calls(respond())],
  })
  for (const wire of [textWire, uiWire]) {
    const encoder = wire.createEncoder()
    const frames = entries.map((entry: Entry) => encoder.encode(entry)).join('')
    expect(frames).toContain('The answer.')
    expect(frames).not.toMatch(/router|square|respond/u)
  }
})

test('a call is recorded before its tool runs, and an output as soon as its tool has ended', async () => {
  const gate = latch()
  const recorded: string[] = []
  const { engine, start } = open({
    config: 'tools: [slow, fast]',
    tools: {
      slow: { parameters: any, execute: () => gate.opened.then(() => 'slow') },
      fast: {
        parameters: any,
        async execute(_, { runId }) {
          for await (const batch of engine.store.log.read(runId)) {
            recorded.push(...only(batch, 'tool-call').map(({ toolName }) => toolName))
          }
          return 'fast'
        },
      },
    },
    script: [calls(toolCall('c1', 'slow'), toolCall('c2', 'fast')), calls(respond())],
  })
  const run = await start()
  const first = await until(engine.store, run.id, ({ type }) => type === 'tool-result')
  expect(first).toMatchObject({ result: 'fast' })
  expect(recorded).toEqual(['slow', 'fast'])
  gate.open()
  expect(await run.result).toMatchObject({ outcome: 'completed' })
})

test('unknown tools, bad arguments, throws and timeouts are outputs, and the loop goes on', async () => {
  const { results, routed } = await whole({
    config: 'tools: [square, bad, { name: slow, timeout: 5ms }]',
    tools: {
      square,
      bad: { parameters: any, execute: () => Promise.reject(new Error('no luck')) },
      slow: { parameters: any, execute: () => new Promise(() => undefined) },
    },
    script: [
      calls(
        toolCall('c1', 'nothing'),
        toolCall('c2', 'square', '{"n": 1,'),
        toolCall('c3', 'square', { n: 'x' }),
        toolCall('c4', 'bad'),
        toolCall('c5', 'slow'),
      ),
      calls(respond()),
    ],
  })
  const said = new Map(results.map(({ toolCallId, result, isError }) => [toolCallId, { result, isError }]))
  const error = (words: string) => ({ result: expect.stringContaining(words), isError: true })
  expect(said.get('c1')).toEqual(error('There is no tool "nothing". Known tools: square, bad, slow, respond.'))
  expect(said.get('c2')).toEqual(error('not valid JSON'))
  expect(said.get('c3')).toEqual(error('do not match'))
  expect(said.get('c4')).toEqual(error('no luck'))
  expect(said.get('c5')).toEqual(error('did not answer within 5 ms'))
  expect(routed.context.split('\n')).toHaveLength(5)
  expect(routed.context).toContain('bad {} failed: no luck')
})

test('a tool without a time of its own has 60 seconds', async () => {
  const began = latch()
  const { engine, start } = open({
    config: 'tools: [slow]',
    tools: { slow: { parameters: any, execute: () => (began.arrive(), new Promise(() => undefined)) } },
    script: [calls(toolCall('c', 'slow')), calls(respond())],
  })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const run = await start()
  await began.reached
  vi.advanceTimersByTime(59_999)
  await new Promise((resolve) => setImmediate(resolve))
  expect(only(await entriesOf(engine.store, run.id), 'tool-result')).toEqual([])
  vi.advanceTimersByTime(1)
  vi.useRealTimers()
  const late = await until(engine.store, run.id, ({ type }) => type === 'tool-result')
  expect(late).toMatchObject({ isError: true, result: 'The tool slow did not answer within 60000 ms.' })
  expect(await run.result).toMatchObject({ outcome: 'completed' })
})

test('at `maxSteps` it hands over and says so; nothing fails', async () => {
  const again = (n: number) => calls(toolCall(`c${n}`, 'square', { n }))
  const { routed, router } = await whole({
    config: 'tools: [square]',
    tools: { square },
    script: [1, 2, 3, 4, 5, 6].map(again),
  })
  expect(router.calls).toHaveLength(5)
  expect(routed).toMatchObject({ finishReason: 'max-steps', respond: null, toolResults: { length: 5 } })
  const limited = await whole({ config: 'tools: [square]\nmaxSteps: 1', tools: { square }, script: [again(1)] })
  expect(limited.routed).toMatchObject({ finishReason: 'max-steps', context: 'square {"n":1} gave: {"square":1}' })
})

test('words without a call hand over too: they are in the result, not in the answer, nor told to who answers', async () => {
  const { routed, answering } = await whole({
    script: [[text('I would say ', 'hello.'), finish('length')]],
  })
  expect(routed).toMatchObject({ text: 'I would say hello.', finishReason: 'length', messages, respond: null })
  expect(JSON.stringify(answering.calls[0]!.options.prompt)).not.toContain('I would say')
})

describe('`respond`', () => {
  test('its siblings in the same message still run, and who answers is told of them', async () => {
    const { results, routed } = await whole({
      config: 'tools: [square]',
      tools: { square },
      script: [calls(toolCall('c1', 'square', { n: 1 }), respond(), toolCall('c2', 'square', { n: 2 }))],
    })
    expect(results.map(({ toolCallId }) => toolCallId).toSorted()).toEqual(['c1', 'c2', 'r'])
    expect(routed.toolResults.map(({ output }) => output)).toEqual([{ square: 1 }, { square: 4 }])
    expect(routed.messages.slice(1)).toMatchObject([
      { role: 'assistant', content: [{ toolCallId: 'c1' }, { toolCallId: 'c2' }] },
      { role: 'tool', content: [{ toolCallId: 'c1' }, { toolCallId: 'c2' }] },
    ])
  })

  test.each([
    ['arguments that are no JSON', '{"reason": '],
    ['arguments of other types', '["a"]'],
    ['reasons that are no text', '{"reason": {"a": 1}}'],
  ])('%s hand over all the same', async (_, input) => {
    const { routed } = await whole({ script: [calls(respond(input))] })
    expect(routed).toMatchObject({ finishReason: 'respond', respond: {}, messages })
  })

  test('is no step of a budget', async () => {
    const { routed } = await whole({ config: 'budget: { steps: 1 }', script: [calls(respond())] })
    expect(routed.finishReason).toBe('respond')
  })
})

describe('repeats', () => {
  const counted = (more: Partial<ToolImplementation> = {}, outcome: () => unknown = () => 'found') => {
    const ran: unknown[] = []
    const look: ToolImplementation = { parameters: any, execute: (input) => (ran.push(input), outcome()), ...more }
    return { ran, look }
  }
  const look = (id: string, input: unknown) => calls(toolCall(id, 'look', input))

  test('the same call is not run again: it is told what came out; two rounds of repeats hand over', async () => {
    const { ran, look: tool } = counted()
    const { results, routed, router } = await whole({
      config: 'tools: [look]\nmaxSteps: 20',
      tools: { look: tool },
      script: [
        look('c1', { a: 1, b: [2] }),
        look('c2', '{ "b": [2], "a": 1 }'),
        look('c3', { a: 2 }),
        look('c4', { a: 2 }),
        calls(toolCall('c5', 'look', { a: 1, b: [2] }), toolCall('c6', 'look', { a: 2 })),
      ],
    })
    expect(ran).toEqual([{ a: 1, b: [2] }, { a: 2 }])
    expect(results.map(({ result, isError }) => [result, isError])).toMatchObject([
      ['found', false],
      [expect.stringMatching(/look was already called with these arguments .* Its result was: "found"/u), false],
      ['found', false],
      [expect.stringContaining('already'), false],
      [expect.stringContaining('already'), false],
      [expect.stringContaining('already'), false],
    ])
    expect(routed.finishReason).toBe('repeats')
    expect(router.calls).toHaveLength(5)
  })

  test('two equal calls in one message both run: no result is known yet', async () => {
    const { ran, look: tool } = counted()
    await whole({
      config: 'tools: [look]',
      tools: { look: tool },
      script: [calls(toolCall('c1', 'look', {}), toolCall('c2', 'look', {})), calls(respond())],
    })
    expect(ran).toHaveLength(2)
  })

  test('what failed may be tried again, and what says that it changes', async () => {
    let n = 0
    const failing = counted({}, () => {
      if (++n < 3) throw new Error('busy')
      return 'at last'
    })
    const first = await whole({
      config: 'tools: [look]\nmaxSteps: 4',
      tools: { look: failing.look },
      script: [look('c1', {}), look('c2', {}), look('c3', {}), calls(respond())],
    })
    expect(first.results.map(({ result }) => result)).toEqual(['busy', 'busy', 'at last', 'Handed over.'])
    const changing = counted({ volatile: true }, () => changing.ran.length)
    const second = await whole({
      config: 'tools: [look]\nmaxSteps: 3',
      tools: { look: changing.look },
      script: [look('c1', {}), look('c2', {}), look('c3', {})],
    })
    expect(second.results.map(({ result }) => result)).toEqual([1, 2, 3])
    expect(second.routed.finishReason).toBe('max-steps')
  })
})

describe('tools of the client', () => {
  const offered = [{ name: 'page', description: 'The page', parameters: { type: 'object', properties: {} } }]
  const names = (model: ReturnType<typeof createScriptedModel>) =>
    model.calls.map(({ options }) => (options.tools ?? []).map(({ name }) => name))

  test('go to the step that answers', async () => {
    const { engine, router, answering } = open({ script: [calls(respond())] })
    const run = await engine.runtime.start('a', { messages, tools: offered })
    await run.result
    expect([names(router), names(answering)]).toEqual([[['respond']], [['page']]])
  })

  test('with `clientTools: true`, or `client: true` on a tool of its own, the router asks, waits and goes on', async () => {
    const { engine, router } = open({
      config: 'clientTools: true\ntools: [{ name: title, client: true }]',
      script: [calls(toolCall('c1', 'page'), toolCall('c2', 'title')), calls(respond())],
    })
    const run = await engine.runtime.start('a', { messages, tools: offered })
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    expect(names(router)).toEqual([['page', 'title', 'respond']])
    for (const { requestId } of only(await entriesOf(engine.store, run.id), 'request')) {
      await run.answer(requestId, { kind: 'tool', output: 'seen' })
    }
    const again = (await engine.runtime.open(run.id))!
    expect(await again.result).toMatchObject({
      outcome: 'completed',
      text: 'The answer.',
      output: { context: 'page {} gave: seen\ntitle {} gave: seen' },
    })
    await entriesOf(engine.store, run.id)
  })

  test('where nothing is waited for they are the answering step’s alone', async () => {
    const { engine, router, answering } = open({
      config: 'clientTools: true\ntools: [{ name: title, client: true }, ask]',
      tools: { ask: { parameters: any } },
      script: [calls(respond())],
    })
    const run = await engine.runtime.start('a', { messages, tools: offered }, { handOver: true })
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    expect([names(router), names(answering)]).toEqual([[['respond']], [['page']]])
  })

  test('one of the name `respond` cannot take the router’s place', async () => {
    const { engine, router } = open({ config: 'clientTools: true', script: [calls(respond())] })
    const run = await engine.runtime.start('a', { messages, tools: [{ name: 'respond', description: 'mine' }] })
    expect(await run.result).toMatchObject({ outcome: 'completed', output: { finishReason: 'respond' } })
    expect(router.calls[0]!.options.tools).toMatchObject([{ description: expect.stringContaining('Hands over') }])
  })
})

test('callbacks: onStepFinish after each call and its tools, onFinish once with the result', async () => {
  const heard: unknown[] = []
  await whole({
    config: 'tools: [square]\nonStepFinish: step\nonFinish: end',
    tools: { square },
    callbacks: {
      step: ({ toolResults }: RouterResult) => void heard.push(toolResults.length),
      end: ({ finishReason }: RouterResult) => void heard.push(finishReason),
    },
    script: [calls(toolCall('c', 'square', { n: 1 })), calls(respond())],
  })
  expect(heard).toEqual([1, 1, 'respond'])
})

test('a model that fails fails the step by name, and onError is told once; the answer is not begun', async () => {
  const heard: unknown[] = []
  const { engine, answering, start } = open({
    config: 'retries: 0\nonError: tell',
    callbacks: { tell: ({ error }: { error: Error }) => void heard.push(error.message) },
    script: [],
  })
  const run = await start()
  const { outcome, error } = await run.result
  expect([outcome, error?.message]).toEqual(['failed', expect.stringContaining('Step "route" (router)')])
  expect(heard).toHaveLength(1)
  expect(answering.calls).toEqual([])
  await entriesOf(engine.store, run.id)
})

test('a stop reaches its model and its tools; onAbort is told', async () => {
  const began = latch()
  let stopped: unknown
  const heard: unknown[] = []
  const { engine, answering, start } = open({
    config: 'tools: [wait]\nonAbort: tell',
    callbacks: { tell: (event: unknown) => void heard.push(event) },
    tools: {
      wait: {
        parameters: any,
        execute: (_, { signal }) => {
          began.arrive()
          return new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject((stopped = signal.reason)), { once: true })
          })
        },
      },
    },
    script: [calls(text('Wait.'), toolCall('c', 'wait'))],
  })
  const run = await start()
  await began.reached
  await run.stop('enough')
  expect(await run.result).toMatchObject({ outcome: 'aborted' })
  expect(stopped).toBeDefined()
  expect(heard).toEqual([{ text: 'Wait.', reason: 'enough' }])
  expect(answering.calls).toEqual([])
  const entries = await entriesOf(engine.store, run.id)
  expect(only(entries, 'tool-result')).toMatchObject([{ outcome: 'aborted' }])
})

test('in memory, without a durable store, it is the same', async () => {
  const { engine, start } = open({
    config: 'tools: [square]',
    tools: { square },
    wrapStore: () => memoryStore(),
    script: [calls(toolCall('c', 'square', { n: 2 })), calls(respond())],
  })
  expect(await (await start()).result).toMatchObject({
    outcome: 'completed',
    output: { context: 'square {"n":2} gave: {"square":4}' },
  })
  expect(engine.store.durable).toBe(false)
})
