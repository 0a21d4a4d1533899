/** Agents that a model calls as tools: what they are told, what comes back, and what is counted. */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { KeptRun } from '../../src/fold/kept-run.ts'
import { createUsageFold } from '../../src/fold/usage-fold.ts'
import { isUnder } from '../../src/part/path.ts'
import { finish, latch, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { entriesOf, only, openEngine, until, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'

const messages = [{ role: 'user', content: 'Hi' }]

const desk = (tools: string, top = '', more = '') => `${top}
workflow:
  - { id: desk, type: llm, config: { model: "script:desk", stream: true, system: "You are the desk.", maxSteps: 20, tools: [${tools}]${more} } }`
const worker = (config = '', top = '') => `${top}
metadata: { description: Finds things out. }
workflow:
  - { id: look, type: llm, config: { model: "script:worker", system: "You look things up."${config} } }`

/** Makes the calls, then says what came back. */
function calling(...rounds: [name: string, input: unknown][][]): Told {
  return createTold((prompt) => {
    const made = resultsIn(prompt).size
    const before = rounds.reduce<number[]>((sums, round) => [...sums, (sums.at(-1) ?? 0) + round.length], [0])
    const next = rounds[before.indexOf(made)]
    if (next !== undefined)
      return [...next.map(([name, input], i) => toolCall(`c${made + i + 1}`, name, input)), finish('tool-calls')]
    return [text('Done.'), finish()]
  })
}
const saying = (words: string) => createTold(() => [text(words), finish()])
const said = (prompt: LanguageModelV4Prompt) =>
  prompt.map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : JSON.stringify(content)}`)
const outputs = (model: Told) => [...resultsIn(model.prompts.at(-1)!).values()]

async function ran(options: EngineOptions, input: Record<string, unknown> = { messages }) {
  const engine = openEngine(options)
  const run = await engine.runtime.start('desk', input)
  const result = await run.result
  return { engine, run, result, entries: await entriesOf(engine.store, run.id) }
}

describe('a call', () => {
  test('the model sees name, description and parameters; the agent gets the message; only its result comes back', async () => {
    const [front, back] = [calling([['researcher', { message: 'Who?' }]]), saying('It was Ada.')]
    const { result, entries } = await ran({
      agents: { desk: desk('{ agent: researcher }'), researcher: worker() },
      scripts: { desk: front, worker: back },
    })
    expect(front.calls[0]!.tools).toMatchObject([
      {
        name: 'researcher',
        description: 'Finds things out.',
        inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
      },
    ])
    expect(said(back.prompts[0]!)).toEqual(['system: You look things up.', 'user: [{"type":"text","text":"Who?"}]'])
    expect(outputs(front)).toEqual([{ type: 'text', value: 'It was Ada.' }])
    expect(result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect(only(entries, 'step-start').find(({ agent }) => agent === 'researcher')).toMatchObject({
      step: 'main/desk/2',
      kind: 'tool-call',
      stepType: 'call-agent',
      toolCallId: 'c1',
      toolName: 'researcher',
      pipeline: worker(),
    })
    expect(only(entries, 'text-delta').map(({ step }) => step)).toContain('main/desk/2/look/1')
  })

  test('inputs of the file are set and hidden, others are parameters, bad arguments go back', async () => {
    const front = calling(
      [['write_article', { style: 'dull', tools: ['x'], topic: 3 }]],
      [['write_article', { topic: 'tea', messages: 'x', tools: ['x'] }]],
    )
    const writer = `
input: { topic: string, style: string, length: { type: integer, default: 100 } }
workflow: [{ id: out, type: output-generator, config: { template: { topic: $input.topic, style: $input.style, length: $input.length, tools: $input.tools? } } }]`
    const { entries } = await ran(
      {
        agents: { desk: desk('{ agent: writer, as: write_article, input: { style: "$input.style" } }'), writer },
        scripts: { desk: front },
      },
      { messages, style: 'dry', tools: [{ name: 'here', parameters: { type: 'object' } }] },
    )
    const { inputSchema } = front.calls[0]!.tools!.find(({ name }) => name === 'write_article') as {
      inputSchema: object
    }
    expect(inputSchema).toMatchObject({ required: ['topic'] })
    expect(Object.keys((inputSchema as { properties: object }).properties)).toEqual(['topic', 'length', 'message'])
    const [wrong, right] = outputs(front)
    expect(wrong).toMatchObject({ type: 'error-text', value: expect.stringContaining('topic') as string })
    expect(right).toEqual({ type: 'json', value: { topic: 'tea', style: 'dry', length: 100 } })
    // What does not fit starts nothing.
    expect(only(entries, 'step-start').filter(({ agent }) => agent === 'writer')).toHaveLength(1)
  })

  test('history: true hands the conversation on, without the system message of the caller', async () => {
    const [front, back] = [calling([['researcher', { message: 'And?' }]]), saying('So.')]
    await ran({
      agents: { desk: desk('{ agent: researcher, history: true }'), researcher: worker() },
      scripts: { desk: front, worker: back },
    })
    expect(said(back.prompts[0]!)).toEqual([
      'system: You look things up.',
      'user: [{"type":"text","text":"Hi"}]',
      'user: [{"type":"text","text":"And?"}]',
    ])
  })

  test('the value is JSON where the agent has a return or an output, which is checked', async () => {
    const front = calling([
      ['good', { message: '?' }],
      ['bad', { message: '?' }],
    ])
    const { result } = await ran({
      agents: {
        desk: desk('{ agent: good }, { agent: bad }'),
        good: worker('', 'output: { n: integer, unit: { type: string, default: kg } }'),
        bad: `
output: { n: integer }
workflow: [{ id: out, type: output-generator, config: { template: { n: many } } }]`,
      },
      scripts: { desk: front, worker: saying('{"n": 3}') },
    })
    const [good, bad] = outputs(front)
    expect(good).toEqual({ type: 'json', value: { n: 3, unit: 'kg' } })
    expect(bad).toEqual({
      type: 'error-text',
      value:
        'The agent bad failed: The value of the agent does not match its "output": the value.n must be an integer, not "many".',
    })
    expect(result.outcome).toBe('completed')
  })

  test('a failure is a result with the text so far, and the run goes on', async () => {
    const front = calling([['researcher', { message: '?' }]])
    const back = createTold(() => [text('I found one'), latch(), finish()])
    const { result, entries } = await ran({
      agents: {
        desk: desk('{ agent: researcher, budget: { tokens: 4 } }'),
        researcher: worker(),
      },
      scripts: { desk: front, worker: back },
    })
    expect(outputs(front)).toEqual([
      {
        type: 'error-text',
        value: expect.stringMatching(
          /^The agent researcher failed: The agent researcher has used up its budget: 4 tokens\.\n\nIt had said so far:\nI found one$/u,
        ) as string,
      },
    ])
    expect(result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect(only(entries, 'error').map(({ step }) => step)).toEqual(['main/desk/2'])
  })

  test('a limit of the caller ends the run', async () => {
    const { result } = await ran({
      agents: { desk: desk('{ agent: researcher }', 'budget: { tokens: 30 }'), researcher: worker() },
      scripts: { desk: calling([['researcher', { message: '?' }]]), worker: saying('Long. '.repeat(100)) },
    })
    expect(result).toMatchObject({ outcome: 'budget-exceeded' })
  })
})

describe('output', () => {
  const run = async (stream: boolean, words: string) => {
    const yaml = `
output: { n: integer }
workflow: [{ id: a, type: llm, config: { model: "script:desk", stream: ${stream} } }]`
    const { result, entries } = await ran({ agents: { desk: yaml }, scripts: { desk: saying(words) } })
    const warnings = only(entries, 'warning').map(({ code }) => code)
    return [result.outcome, only(entries, 'run-end')[0]!.output, result.error?.code, warnings]
  }
  test.each([
    [true, '{"n": 3}', ['completed', { n: 3 }, undefined, []]],
    [false, '{"n": 3}', ['completed', { n: 3 }, undefined, []]],
    // A client has read it.
    [true, 'three', ['completed', undefined, undefined, ['bad-output']]],
    [false, 'three', ['failed', undefined, 'bad-output', []]],
  ])('of a run whose answer streams: %s, %s', async (stream, words, expected) => {
    expect(await run(stream, words)).toEqual(expected)
  })
})

describe('several calls', () => {
  test('of one reply run at once, as many as parallelAgents, and results come as they end', async () => {
    const gates = { a: latch(), b: latch(), c: latch() }
    const back = createTold((prompt): ScriptStep[] => {
      const word = (prompt.at(-1)!.content as { text: string }[])[0]!.text as keyof typeof gates
      return [gates[word], text(word), finish()]
    })
    const front = calling([
      ['researcher', { message: 'a' }],
      ['researcher', { message: 'b' }],
      ['researcher', { message: 'c' }],
    ])
    const engine = openEngine({
      agents: { desk: desk('{ agent: researcher }', 'limits: { parallelAgents: 2 }'), researcher: worker() },
      scripts: { desk: front, worker: back },
    })
    const run = await engine.runtime.start('desk', { messages })
    await Promise.all([gates.a.reached, gates.b.reached])
    expect(back.calls).toHaveLength(2)
    gates.b.open()
    await gates.c.reached
    gates.c.open()
    await until(engine.store, run.id, (entry) => entry.type === 'tool-result' && entry.toolCallId === 'c3')
    gates.a.open()
    await run.result
    const results = only(await entriesOf(engine.store, run.id), 'tool-result')
    expect(results.map(({ toolCallId }) => toolCallId)).toEqual(['c2', 'c3', 'c1'])
    // In the prompt they are in the order of the calls.
    expect(outputs(front)).toEqual(['a', 'b', 'c'].map((value) => ({ type: 'text', value })))
  })

  test('agents that wait, for a person or for their own agents, leave their place to others', async () => {
    const front = calling([
      ['team', { message: 'ask1' }],
      ['team', { message: 'ask2' }],
      ['team', { message: 'go' }],
    ])
    const team = createTold((prompt): ScriptStep[] => {
      const word = (prompt.findLast(({ role }) => role === 'user')!.content as { text: string }[])[0]!.text
      if (resultsIn(prompt).size > 0) return [text(`${word} done`), finish()]
      return [
        word === 'go' ? toolCall('t', 'member', { message: 'deep' }) : toolCall(word, 'ask', {}),
        finish('tool-calls'),
      ]
    })
    const agents = {
      desk: desk('{ agent: team }', 'limits: { parallelAgents: 1 }'),
      team: `workflow: [{ id: t, type: llm, config: { model: "script:team", tools: [ask, { agent: member }] } }]`,
      member: worker(),
    }
    const ask: ToolImplementation = { parameters: z.looseObject({}) }
    const engine = openEngine({ agents, tools: { ask }, scripts: { desk: front, team, worker: saying('here') } })
    const run = await engine.runtime.start('desk', { messages })
    // Only when nothing else can go on.
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'suspend')).toMatchObject([{ requests: [expect.any(String), expect.any(String)] }])
    expect(only(entries, 'tool-result').map(({ toolCallId }) => toolCallId)).toEqual(['t', 'c3'])
    const requests = only(entries, 'request')
    for (const { requestId, toolCallId } of requests)
      await engine.runtime.answer(run.id, requestId, { kind: 'tool', output: toolCallId })
    expect(await (await engine.runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed' })
    expect(outputs(front)).toEqual(['ask1 done', 'ask2 done', 'go done'].map((value) => ({ type: 'text', value })))
  })

  test('agentCalls: what is over it is refused to the model', async () => {
    const calls = Array.from({ length: 3 }, (): [string, unknown] => ['researcher', { message: '?' }])
    const front = calling(calls, [['researcher', { message: 'more' }]])
    const { result } = await ran({
      agents: { desk: desk('{ agent: researcher }', 'limits: { agentCalls: 3 }'), researcher: worker() },
      scripts: { desk: front, worker: saying('Yes.') },
    })
    expect(outputs(front).at(-1)).toMatchObject({
      type: 'error-text',
      value: expect.stringContaining('limits.agentCalls') as string,
    })
    expect(result.outcome).toBe('completed')
  })

  test('usage counts once, in the run, the step and each agent', async () => {
    const middle = createTold((prompt): ScriptStep[] =>
      resultsIn(prompt).size > 0
        ? [text('m'), finish()]
        : [toolCall('d', 'deep', { message: '?' }), finish('tool-calls')],
    )
    const { entries } = await ran({
      agents: {
        desk: desk('{ agent: middle }'),
        middle: `workflow: [{ id: m, type: llm, config: { model: "script:middle", tools: [{ agent: deep }] } }]`,
        deep: worker(),
      },
      scripts: { desk: calling([['middle', { message: '?' }]]), middle, worker: saying('d') },
    })
    const one = only(entries, 'usage')[0]!.usage.totalTokens!
    expect(only(entries, 'usage')).toHaveLength(5)
    expect(only(entries, 'run-end')[0]!.usage.totalTokens).toBe(5 * one)
    const finishes = new Map(only(entries, 'step-finish').map(({ step, usage }) => [step, usage?.totalTokens]))
    expect(finishes.get('main/desk')).toBe(5 * one)
    expect(finishes.get('main/desk/2/m')).toBe(3 * one)
    const used = createUsageFold()
    for (const entry of entries) used.apply(entry)
    expect(used.read().usageByAgent.map(({ agent, usage }) => [agent, usage.totalTokens])).toEqual([
      ['desk', 2 * one],
      ['middle', 2 * one],
      ['deep', one],
    ])
  })
})

describe('nesting', () => {
  test('agents that call each other stop at depth 8 with a result for the innermost caller', async () => {
    const model = createTold((prompt): ScriptStep[] =>
      resultsIn(prompt).size > 0
        ? [text('back'), finish()]
        : [toolCall('c', 'desk', { message: '?' }), finish('tool-calls')],
    )
    const { entries, result } = await ran({
      agents: { desk: desk('{ agent: desk, recursive: true }', 'budget: { steps: 60 }') },
      scripts: { desk: model },
    })
    expect(result.outcome).toBe('completed')
    const deepest = only(entries, 'tool-result').filter(({ isError }) => isError)
    expect(deepest).toMatchObject([{ result: expect.stringContaining('nested more than 8') as string }])
    expect(only(entries, 'step-start').filter(({ agent }) => agent === 'desk')).toHaveLength(9)
  })

  type Running = Awaited<ReturnType<ReturnType<typeof openEngine>['runtime']['start']>>
  test.each<[string, (engine: ReturnType<typeof openEngine>, run: Running) => unknown]>([
    ['a stop', (_, run) => run.stop('enough')],
    ['its only reader, who leaves,', ({ runtime }, run) => runtime.attach(run.id, 'cancel')()],
    ['the next message', ({ runtime }) => runtime.start('other', { messages }, { threadId: 't', onBusy: 'interrupt' })],
  ])('%s reaches every level, and leaves no request to a provider open', async (_, end) => {
    const held = latch()
    const back = createTold(() => [text('a'), held, finish()])
    const engine = openEngine({
      agents: {
        desk: desk('{ agent: middle }'),
        middle: `workflow: [{ id: m, type: llm, config: { model: "script:middle", tools: [{ agent: deep }] } }]`,
        deep: worker(),
        other: 'workflow: [{ id: out, type: output-generator, config: { template: x } }]',
      },
      scripts: {
        desk: calling([['middle', { message: '?' }]]),
        middle: calling([['deep', { message: '?' }]]),
        worker: back,
      },
    })
    const run = await engine.runtime.start('desk', { messages }, { threadId: 't' })
    await held.reached
    await end(engine, run)
    expect(await run.result).toMatchObject({ outcome: 'aborted' })
    expect(back.calls[0]!.abortSignal!.aborted).toBe(true)
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'step-finish').map(({ step }) => step)).toContain('main/desk/2/m/2/look/1')
  })

  test('an approval inside waits for a person, and a denial is told to the inner model', async () => {
    const back = calling([['pay', { sum: 3 }]])
    const front = calling([['worker', { message: '?' }]])
    const pay: ToolImplementation = { parameters: z.looseObject({}), execute: () => 'paid', approval: true }
    const { engine, run, entries, result } = await ran({
      agents: { desk: desk('{ agent: worker }'), worker: worker(', tools: [pay]') },
      tools: { pay },
      scripts: { desk: front, worker: back },
    })
    expect(result.outcome).toBe('suspended')
    const [request] = only(entries, 'request')
    expect(request).toMatchObject({ kind: 'approval', toolName: 'pay', input: { sum: 3 }, step: 'main/desk/2/look/2' })
    await engine.runtime.answer(run.id, request!.requestId, { kind: 'approval', approved: false, reason: 'too much' })
    expect(await (await engine.runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed' })
    expect(outputs(back)).toMatchObject([{ type: 'execution-denied' }])
    expect(outputs(front)).toEqual([{ type: 'text', value: 'Done.' }])
  })

  test.each([
    [false, []],
    [true, ['here']],
  ])('tools of the request are offered inside with clientTools: %s', async (clientTools, names) => {
    const back = saying('x')
    await ran(
      {
        agents: { desk: desk(`{ agent: researcher, clientTools: ${clientTools} }`), researcher: worker() },
        scripts: { desk: calling([['researcher', { message: '?' }]]), worker: back },
      },
      { messages, tools: [{ name: 'here', parameters: { type: 'object' } }] },
    )
    expect((back.calls[0]!.tools ?? []).map(({ name }) => name)).toEqual(names)
  })

  test('where a run cannot wait, a client tool inside is unavailable', async () => {
    const back = calling([['ask', {}]])
    const engine = openEngine({
      agents: { desk: desk('{ agent: researcher }'), researcher: worker(', tools: [ask]') },
      tools: { ask: { parameters: z.looseObject({}) } },
      scripts: { desk: calling([['researcher', { message: '?' }]]), worker: back },
    })
    const run = await engine.runtime.start('desk', { messages }, { handOver: true })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect(outputs(back)).toMatchObject([
      { type: 'error-text', value: expect.stringContaining('unavailable') as string },
    ])
  })

  test('inner text is in no prompt of the caller but as a result', async () => {
    const front = calling([['researcher', { message: '?' }]])
    const back = createTold((prompt): ScriptStep[] =>
      resultsIn(prompt).size > 0
        ? [text('the result'), finish()]
        : [text('secret musing'), toolCall('w', 'work', {}), finish('tool-calls')],
    )
    const { entries, result } = await ran({
      agents: { desk: desk('{ agent: researcher }'), researcher: worker(', tools: [work]') },
      tools: { work: { parameters: z.looseObject({}), execute: () => 'w' } },
      scripts: { desk: front, worker: back },
    })
    expect(JSON.stringify(front.prompts)).not.toContain('musing')
    expect(JSON.stringify(only(entries, 'prompt').filter(({ step }) => !isUnder(step, 'main/desk/2')))).not.toContain(
      'musing',
    )
    expect(result.text).toBe('Done.')
  })

  test('a fork inside of an agent goes on there; what had finished is not done again', async () => {
    const ran: string[] = []
    const work: ToolImplementation = {
      parameters: z.looseObject({}),
      execute: (_, { toolCallId }) => void ran.push(toolCallId),
    }
    const back = calling([['work', {}]])
    const front = calling([['researcher', { message: '?' }]])
    const engine = openEngine({
      agents: {
        desk: desk('{ agent: researcher }'),
        researcher: worker(', tools: [work]', 'after: [{ id: note, type: output-generator, config: { template: x } }]'),
      },
      tools: { work },
      scripts: { desk: front, worker: back },
    })
    const run = await engine.runtime.start('desk', { messages })
    await run.result
    const entries = await entriesOf(engine.store, run.id)
    const at = entries.find(({ type, step }) => type === 'step-finish' && step === 'main/desk/2/look/2')!.seq
    const asked = back.calls.length
    const forked = await engine.runtime.fork(run.id, { at })
    expect(await forked.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect([ran.length, back.calls.length - asked]).toEqual([1, 1])
    const own = await entriesOf(engine.store, forked.id)
    expect(only(own, 'step-start').filter(({ step }) => step.startsWith('after/'))).toHaveLength(2)
    // Behind the call: the agent is walked through for its `after`, and asks nobody.
    const behind = entries.find(({ type, step }) => type === 'step-finish' && step === 'main/desk/2')!.seq
    const later = await engine.runtime.fork(run.id, { at: behind })
    expect(await later.result).toMatchObject({ outcome: 'completed' })
    expect(back.calls.length - asked).toBe(1)
    const laterEntries = await entriesOf(engine.store, later.id)
    expect(only(laterEntries, 'step-start').filter(({ step }) => step.startsWith('after/'))).toHaveLength(2)
  })

  test('agents that the caller may not use are not offered', async () => {
    const front = saying('alone')
    const engine = openEngine({
      agents: { desk: desk('{ agent: researcher }'), researcher: worker('', 'access: { roles: [operator] }') },
      scripts: { desk: front, worker: saying('x') },
    })
    const user = { id: 'u1', roles: ['user'] as const }
    await (
      await engine.runtime.start('desk', { messages }, { user })
    ).result
    expect(front.calls[0]!.tools ?? []).toEqual([])
  })
})

describe('a handoff', () => {
  const refunds = `
metadata: { description: Pays back. }
workflow: [{ id: refund, type: llm, config: { model: "script:worker", stream: true, system: "You refund.", tools: [work] } }]`
  const work: ToolImplementation = { parameters: z.looseObject({}), execute: () => 'worked' }

  test('the agent gets the conversation and answers; other calls of the reply come first, a second handoff is an error', async () => {
    const front = createTold((): ScriptStep[] => [
      text('One moment. '),
      toolCall('h1', 'transfer_to_refunds', {}),
      toolCall('h2', 'transfer_to_refunds', {}),
      toolCall('w', 'work', {}),
      finish('tool-calls'),
    ])
    const back = saying('It is paid.')
    const { result, entries } = await ran({
      agents: { desk: desk('work, { agent: refunds, handoff: true }'), refunds },
      tools: { work },
      scripts: { desk: front, worker: back },
    })
    expect(result).toMatchObject({ outcome: 'completed', text: 'One moment. It is paid.' })
    expect(said(back.prompts[0]!)).toEqual([
      'system: You refund.',
      'user: [{"type":"text","text":"Hi"}]',
      expect.stringMatching(/^assistant: .*One moment.*work/u),
      expect.stringMatching(/^tool: .*worked/u),
    ])
    expect(JSON.stringify(back.prompts)).not.toMatch(/transfer_to|You are the desk/u)
    expect(front.calls).toHaveLength(1)
    expect(only(entries, 'tool-result').map(({ toolCallId, isError }) => [toolCallId, isError])).toEqual([
      ['w', false],
      ['h2', true],
      ['h1', false],
    ])
    expect(only(entries, 'answer-end')).toMatchObject([{ finishReason: 'stop' }])
    expect(only(entries, 'step-start').find(({ handoff }) => handoff)).toMatchObject({ agent: 'refunds' })
  })

  test.each([
    ['text', 'workflow: [{ id: refund, type: llm, config: { model: "script:worker" } }]', 'Paid.'],
    ['JSON', 'workflow: [{ id: out, type: output-generator, config: { template: { paid: 3 } } }]', '{"paid":3}'],
  ])('an agent that does not stream answers in one piece: %s', async (_, yaml, expected) => {
    const { result, entries } = await ran({
      agents: { desk: desk('{ agent: refunds, handoff: true }'), refunds: yaml },
      scripts: { desk: calling([['transfer_to_refunds', {}]]), worker: saying('Paid.') },
    })
    expect(result).toMatchObject({ outcome: 'completed', text: expected })
    expect(only(entries, 'answer-end')).toMatchObject([{ finishReason: 'stop' }])
  })

  test('a failure of the agent that took over is one of the run', async () => {
    const { result } = await ran({
      agents: { desk: desk('{ agent: refunds, handoff: true }'), refunds },
      tools: { work },
      scripts: { desk: calling([['transfer_to_refunds', {}]]), worker: createTold(() => [text('I'), finish('error')]) },
    })
    expect(result.outcome).toBe('failed')
  })

  test('its view is labelled with the agent that answered', async () => {
    const { engine, run } = await ran({
      agents: { desk: desk('{ agent: refunds, handoff: true }'), refunds },
      tools: { work },
      scripts: { desk: calling([['transfer_to_refunds', {}]]), worker: saying('Paid.') },
    })
    expect(((await engine.store.runs.view(run.id))!.view as KeptRun).labels).toEqual({ answeredBy: 'refunds' })
  })

  test('sticky: the thread stays with the agent until it hands back', async () => {
    const front = createTold((prompt): ScriptStep[] => {
      const word = JSON.stringify(prompt.findLast(({ role }) => role === 'user')!.content)
      return word.includes('refund')
        ? [toolCall('h', 'transfer_to_refunds', {}), finish('tool-calls')]
        : [text('The desk.'), finish()]
    })
    const back = createTold((prompt): ScriptStep[] => {
      const word = JSON.stringify(prompt.findLast(({ role }) => role === 'user')!.content)
      return word.includes('weather')
        ? [toolCall('b', 'hand_back', {}), finish('tool-calls')]
        : [text('Refunds.'), finish()]
    })
    const engine = openEngine({
      agents: { desk: desk('{ agent: refunds, handoff: true }', 'sticky: true'), refunds },
      tools: { work },
      scripts: { desk: front, worker: back },
    })
    const ask = async (content: string) => {
      const run = await engine.runtime.start('desk', { messages: [{ role: 'user', content }] }, { threadId: 't' })
      const { text: answer } = await run.result
      const entries = await entriesOf(engine.store, run.id)
      const { labels } = (await engine.store.runs.view(run.id))!.view as KeptRun
      return [answer, front.calls.length, back.calls.length, labels?.['answeredBy'], only(entries, 'answer-end').length]
    }
    expect(await ask('I want a refund')).toEqual(['Refunds.', 1, 1, 'refunds', 1])
    // The desk's model is not asked.
    expect(await ask('how long?')).toEqual(['Refunds.', 1, 2, 'refunds', 1])
    expect((back.calls[1]!.tools ?? []).map(({ name }) => name)).toEqual(['work', 'hand_back'])
    expect((back.calls[0]!.tools ?? []).map(({ name }) => name)).toEqual(['work'])
    expect(await ask('and the weather?')).toEqual(['The desk.', 2, 3, undefined, 1])
    expect(await ask('thanks')).toEqual(['The desk.', 3, 3, undefined, 1])
  })
})
