/** Containers that wait for a client, and crashes behind any entry of them: nothing twice, the same end. */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Entry } from '../../src/part/entry.ts'
import type { Reply, RequestPart } from '../../src/part/request-part.ts'
import { withoutSuperseded } from '../../src/fold/superseded.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import { finish, latch, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold, cutAfter, resultsIn } from '../support/going-on.ts'
import { placesOf } from '../support/thorough.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const any = z.looseObject({})
const llm = (id: string, more = '', says = id) =>
  `{ id: ${id}, type: llm, result: ${id}, config: { model: "script:m", messages: [{ role: user, content: "${says}" }]${more} } }`

interface Scenario {
  workflow: string
  /** Further agents. */
  agents?: Record<string, string>
  /** Calls of the client's tool, and approvals, that a whole run asks for. */
  asks: number
  /** How it ends; default `completed`. */
  outcome?: string
  /** Calls of one reply run at the same time. */
  anyOrder?: boolean
  /** `error` parts of a whole run; default none. */
  errors?: number
}

/**
 * Calls a tool of the server when its first message says `work…`, the client's when it says `ask…`, one that wants an
 * approval when it says `pay…`; then says what came of it. The last word names the call.
 */
function answer(prompt: LanguageModelV4Prompt): ScriptStep[] {
  const said = prompt.findLast(({ role }) => role === 'user')!.content as { text: string }[]
  const word = said[0]!.text
  const results = [...resultsIn(prompt).values()]
  const name = /^(work|ask|pay)/u.exec(word)?.[1]
  if (word === 'team' && results.length === 0) {
    const calls = ['work1', 'ask2', 'pay3'].map((message) => toolCall(`call-${message}`, 'child', { message }))
    return [text('I ask around. '), ...calls, finish('tool-calls')]
  }
  if (word === 'lead' && results.length === 0)
    return [
      toolCall('call-team', 'team', { message: 'team' }),
      toolCall('call-work9', 'work', {}),
      finish('tool-calls'),
    ]
  if (word === 'transfer' && results.length === 0) {
    const calls = [toolCall('call-to', 'transfer_to_child', {}), toolCall('call-work8', 'work', {})]
    return [text('One moment. '), ...calls, finish('tool-calls')]
  }
  if (word === 'code' && results.length === 0)
    return [text('I write it. '), toolCall('call-code', 'runCode', { code: script }), finish('tool-calls')]
  if (name === undefined || results.length > 0) return [text(`${word}:`, JSON.stringify(results)), finish()]
  return [text('Wait. '), toolCall(`call-${word.split(' ').at(-1)}`, name, { word }), finish('tool-calls')]
}

/** Calls side by side and one after the other, asks for a value, an approval and a tool of the client, and draws lots. */
const script = `
const work = (input) => tools.work(input).catch((error) => error.name)
const first = await Promise.all(['w1', 'w2', 'w3'].map((word) => work({ word })))
console.log(first.length, 'are done')
const [asked, paid] = await Promise.all([tools.ask({ word: 'a1' }).catch(String), tools.pay({ word: 'p1' }).catch(String)])
const answer = await ask('How many?', { type: 'number' })
const lots = Math.floor(Math.random() * 1000)
const last = await Promise.race([work({ word: 'w4', answer, lots }), new Promise(() => {})])
return { first, asked, paid, answer, lots, last, at: new Date() instanceof Date }`

/** Works, asks or pays as the message says. */
const worker = `
workflow:
  - { id: call, type: llm, config: { model: "script:m", tools: [work, ask, { name: pay, approval: true }] } }
after:
  - { id: note, type: output-generator, config: { template: noted } }`

const scenarios: Record<string, Scenario> = {
  condition: {
    workflow: `
  - ${llm('work1', ', tools: [work]')}
  - id: choose
    type: condition
    result: chosen
    config:
      if: $work1.text contains "work1"
      then:
        - ${llm('ask1', ', tools: [ask]')}
        - id: deeper
          type: condition
          config: { if: $ask1.text == "", then: [${llm('never')}], else: [${llm('say')}] }
      else: [${llm('never2')}]
  - { id: end, type: output-generator, config: { template: { chosen: "$chosen.text" } } }`,
    asks: 1,
  },
  'loop over a list': {
    workflow: `
  - id: all
    type: loop
    result: all
    config:
      over: [a, b, c]
      max: 5
      as: letter
      steps:
        - { id: call, type: llm, result: last, config: { model: "script:m", tools: [work, ask], messages: [{ role: user, content: "work$letter" }] } }
        - { id: note, type: output-generator, config: { template: { n: "$index", letter: "$letter", text: "$last.text" } } }
  - { id: end, type: output-generator, config: { template: "$all" } }`,
    asks: 0,
  },
  'loop while, with the variables of the round before': {
    workflow: `
  - id: all
    type: loop
    result: all
    config:
      while: $last.n? != 2
      max: 5
      steps:
        - { id: call, type: llm, result: said, config: { model: "script:m", tools: [ask], messages: [{ role: user, content: "ask$index after $last.n?" }] } }
        - { id: note, type: output-generator, result: last, config: { template: { n: "$index", text: "$said.text" } } }
  - { id: end, type: output-generator, config: { template: "$all" } }`,
    asks: 3,
  },
  'parallel with tools of the server, of the client and an approval': {
    workflow: `
  - id: all
    type: parallel
    result: all
    config:
      branches:
        one: [${llm('work1', ', tools: [work]')}, { id: one-out, type: output-generator, config: { template: "$work1.text" } }]
        two: [${llm('ask1', ', tools: [ask]')}, { id: two-out, type: output-generator, config: { template: "$ask1.text" } }]
        three: [${llm('pay1', ', tools: [{ name: pay, approval: true }]')}, { id: three-out, type: output-generator, config: { template: "$pay1.text" } }]
  - { id: end, type: output-generator, config: { template: "$all" } }`,
    asks: 2,
  },
  'parallel whose branches call their calls the same': {
    workflow: `
  - id: all
    type: parallel
    result: all
    config:
      branches:
        one: [${llm('ask1', ', tools: [ask]', 'ask it')}, { id: one-out, type: output-generator, config: { template: "$ask1.text" } }]
        two: [${llm('ask2', ', tools: [ask]', 'ask too it')}, { id: two-out, type: output-generator, config: { template: "$ask2.text" } }]
        three: [${llm('work1', ', tools: [work]', 'work it')}, { id: three-out, type: output-generator, config: { template: "$work1.text" } }]
  - { id: end, type: output-generator, config: { template: "$all" } }`,
    asks: 2,
  },
  'parallel that goes on behind a failure': {
    workflow: `
  - id: all
    type: parallel
    result: all
    config:
      onError: continue
      branches:
        bad: [{ id: wrong, type: output-generator, config: { template: "$input.nothing" } }]
        good: [${llm('ask1', ', tools: [ask]')}, { id: good-out, type: output-generator, config: { template: "$ask1.text" } }]
  - { id: end, type: output-generator, config: { template: "$all" } }`,
    asks: 1,
    errors: 1,
  },
  'parallel that fails': {
    workflow: `
  - id: all
    type: parallel
    config:
      branches:
        bad: [${llm('say')}, { id: wrong, type: output-generator, config: { template: "$input.nothing" } }]
        good: [${llm('ask1', ', tools: [ask]')}]`,
    asks: 0,
    outcome: 'failed',
    errors: 1,
  },
  'a called agent that asks, in a loop in a branch': {
    workflow: `
  - id: all
    type: parallel
    result: all
    config:
      branches:
        left:
          - id: rounds
            type: loop
            config:
              over: [x, y]
              max: 2
              steps: [{ id: child, type: call-agent, config: { agent: child, input: { word: "ask$item" } } }]
        right: [{ id: child2, type: call-agent, config: { agent: child, input: { word: workr } } }]
  - { id: end, type: output-generator, config: { template: "$all" } }`,
    agents: {
      child: `
input: { word: string, tone: { type: string, default: dry } }
workflow:
  - { id: call, type: llm, result: call, config: { model: "script:m", tools: [work, ask], messages: [{ role: user, content: "$input.word" }] } }
return: { tone: "$input.tone", text: "$call.text" }
after:
  - { id: note, type: output-generator, config: { template: "$call.text" } }
`,
    },
    asks: 2,
  },
  'agents that a model calls at once': {
    workflow: `
  - ${llm('team', ', tools: [{ agent: child }]')}
  - { id: end, type: output-generator, config: { template: { text: "$team.text", results: "$team.toolResults" } } }`,
    agents: { child: worker },
    asks: 2,
    anyOrder: true,
  },
  'agents below an agent that a model calls': {
    workflow: `
  - ${llm('lead', ', tools: [work, { agent: team }]')}
  - { id: end, type: output-generator, config: { template: { text: "$lead.text", results: "$lead.toolResults" } } }`,
    agents: {
      team: `
workflow:
  - { id: team, type: llm, config: { model: "script:m", tools: [{ agent: child, approval: true }] } }`,
      child: worker,
    },
    asks: 5,
    anyOrder: true,
  },
  'an agent that takes over': {
    workflow: `
  - { id: desk, type: llm, config: { model: "script:m", stream: true, tools: [work, { agent: child, handoff: true }], messages: [{ role: user, content: transfer }] } }`,
    agents: {
      child: worker.replace(
        'call, type: llm, config: { model: "script:m", ',
        'call, type: llm, config: { model: "script:m", stream: true, messages: [{ role: user, content: ask7 }], ',
      ),
    },
    asks: 1,
  },
  'an agent that takes over and does not stream': {
    workflow: `
  - { id: desk, type: llm, config: { model: "script:m", stream: true, tools: [work, { agent: child, handoff: true }], messages: [{ role: user, content: transfer }] } }`,
    agents: {
      child: worker.replace('config: { ', 'config: { messages: [{ role: user, content: ask7 }], '),
    },
    asks: 1,
  },
  'a script': {
    workflow: `
  - id: totals
    type: script
    result: totals
    config:
      code: ${JSON.stringify(script)}
      tools: [work, ask, { name: pay, approval: true }]
  - { id: end, type: output-generator, config: { template: "$totals" } }`,
    asks: 3,
    anyOrder: true,
  },
  'a script that a model writes': {
    workflow: `
  - ${llm('code', ', tools: [work, { code: [work, ask, { name: pay, approval: true }] }]')}
  - { id: end, type: output-generator, config: { template: { text: "$code.text", results: "$code.toolResults" } } }`,
    asks: 3,
    anyOrder: true,
  },
  'answers of parallel branches': {
    workflow: `
  - id: all
    type: parallel
    config:
      branches:
        a: [${llm('work1', ', tools: [work], stream: true')}]
        b: [${llm('ask1', ', tools: [ask], stream: true')}]`,
    asks: 1,
  },
}

function live({ workflow, agents = {} }: Scenario, top: string) {
  const ran: string[] = []
  const run: ToolImplementation['execute'] = (_, { toolCallId }) => {
    ran.push(toolCallId)
    return { result: 'done' }
  }
  const tools = {
    work: { parameters: any, execute: run },
    pay: { parameters: any, execute: run },
    ask: { parameters: any },
  }
  const model = createTold(answer)
  const options: EngineOptions = {
    agents: { a: `${top}\nworkflow:${workflow}\n`, ...agents },
    tools,
    scripts: { m: model },
  }
  return { options, model, ran }
}

/** Answers whatever is asked until the run ends: the client's tool with its own input, approvals with yes. */
async function attend(engine: Engine, run: string): Promise<Entry[]> {
  for (;;) {
    const { outcome } = await (await engine.runtime.open(run))!.result
    if (outcome !== 'suspended') return entriesOf(engine.store, run)
    const entries = await entriesOf(engine.store, run)
    const answered = new Set(only(entries, 'response').map(({ requestId }) => requestId))
    for (const { requestId, kind, input } of only(entries, 'request')) {
      if (answered.has(requestId)) continue
      const answer = answerTo(kind, input)
      await engine.runtime.answer(run, requestId, answer)
      break
    }
  }
}

function answerTo(kind: RequestPart['kind'], input: unknown): Reply {
  if (kind === 'tool') return { kind, output: input }
  return kind === 'approval' ? { kind, approved: true } : { kind, value: 12 }
}

/** Without the numbers of calls that run at the same time: a crash may change which of them is the first. */
const steps = (entries: readonly Entry[], { anyOrder = false }: Scenario) =>
  only(entries, 'step-start')
    .map(({ step, stepType }) => `${anyOrder ? step.replaceAll(/\d+/gu, 'n') : step} ${stepType}`)
    .toSorted()

describe.each(Object.entries(scenarios))('%s', (name, scenario) => {
  const { outcome = 'completed', asks, errors = 0 } = scenario
  let whole: Entry[]
  beforeAll(async () => {
    const engine = createEngine(live(scenario, 'recover: true').options)
    try {
      const { id } = await engine.runtime.start('a', { messages })
      whole = await attend(engine, id)
    } finally {
      await engine.close()
    }
  })

  test('it waits for its client and goes on', () => {
    const [end] = only(whole, 'run-end')
    expect(end).toMatchObject({ outcome })
    expect(only(whole, 'request').length).toBeGreaterThanOrEqual(asks)
    expect(only(whole, 'response').filter((each) => each.outcome === 'answered')).toHaveLength(asks)
    expect(only(whole, 'suspend').length > 0).toBe(asks > 0)
    expect(JSON.stringify(end)).not.toContain('never')
    expect(only(whole, 'error')).toHaveLength(errors)
  })

  test('a crash behind any entry: nothing twice, the same end', async () => {
    const runId = only(whole, 'run-start')[0]!.runId
    // A long log has more places of each kind.
    const part = whole.length > 80 ? 10 : 5
    for (const k of placesOf(whole.length - 1, Object.keys(scenarios).indexOf(name), part)) {
      const { options, model, ran } = live(scenario, 'recover: true')
      const engine = await cutAfter(whole, k, options)
      const prefix = whole.slice(0, k)
      const where = `cut after ${k}, ${prefix.at(-1)!.type} ${prefix.at(-1)!.step}`
      try {
        const waits = prefix.at(-1)!.type === 'suspend'
        expect(await engine.runtime.recover(), where).toEqual({ resumed: waits ? 0 : 1, interrupted: 0 })
        const entries = await attend(engine, runId)
        expect(entries.slice(0, k), where).toEqual(prefix)
        const [end] = only(entries, 'run-end')
        expect(end, where).toMatchObject({ outcome })
        expect(end!.error?.message, where).toBe(only(whole, 'run-end')[0]!.error?.message)

        const kept = withoutSuperseded(entries)
        const begun = only(prefix, 'step-start').filter(({ stepType }) => stepType === 'tool-call')
        const done = new Set(only(prefix, 'tool-result').map(({ toolCallId }) => toolCallId))
        const lost = begun.map(({ toolCallId }) => toolCallId!).filter((id) => !done.has(id))
        expect(new Set(ran).size, where).toBe(ran.length)
        for (const { toolCallId } of begun) expect(ran, where).not.toContain(toolCallId)
        if (outcome === 'failed') continue
        expect(steps(kept, scenario), where).toEqual(steps(whole, scenario))
        const said = only(withoutSuperseded(prefix), 'finish').length
        expect(model.calls.length, where).toBe(only(whole, 'finish').length - said)
        if (lost.length === 0) expect(end!.output, where).toEqual(only(whole, 'run-end')[0]!.output)
      } finally {
        await engine.close()
      }
    }
  })
})

test('a branch that had failed before the crash has stopped the others for good', async () => {
  const spoke = latch()
  const model = createTold(() => [text('Once upon '), latch(), finish()])
  const options: EngineOptions = {
    agents: {
      a: `recover: true
workflow: [{ id: all, type: parallel, config: { branches: { talks: [${llm('talk')}], breaks: [{ id: break, type: break }] } } }]`,
    },
    scripts: { m: model },
    steps: { break: () => spoke.opened.then(() => Promise.reject(new Error('broken'))) },
  }
  const first = createEngine(options)
  const { id, result } = await first.runtime.start('a', { messages })
  await until(first.store, id, ({ type }) => type === 'text-end')
  spoke.open()
  await result
  const whole = await entriesOf(first.store, id)
  await first.close()
  const k = whole.findIndex(({ type, step }) => type === 'step-finish' && step === 'main/all/breaks') + 1
  const asked = model.calls.length
  const engine = await cutAfter(whole, k, options)
  try {
    await engine.runtime.recover()
    expect(await (await engine.runtime.open(id))!.result).toMatchObject({
      outcome: 'failed',
      error: { message: 'Step "break" (break) failed.', step: 'main/all/breaks/break', detail: 'broken' },
    })
    expect(model.calls.length).toBe(asked)
    const entries = await entriesOf(engine.store, id)
    expect(only(entries, 'error')).toHaveLength(1)
    const began = entries.slice(k).filter(({ type }) => /^(step-start|step-reset|prompt)$/u.test(type))
    expect(began).toEqual([])
  } finally {
    await engine.close()
  }
})

test.each([
  [
    'condition',
    `{ id: c, type: condition, config: { if: $input.go, then: [${llm('ask1', ', tools: [ask]')}], else: [${llm('never')}] } }`,
  ],
  ['loop', `{ id: c, type: loop, config: { while: $input.go, max: 3, steps: [${llm('ask1', ', tools: [ask]')}] } }`],
])('%s: what had begun goes on, also when what comes with the answer would decide otherwise', async (_, step) => {
  const { options, model } = live({ workflow: `\n  - ${step}`, asks: 1 }, '')
  const engine = createEngine(options)
  try {
    const run = await engine.runtime.start('a', { messages, go: true })
    await run.result
    const [request] = only(await entriesOf(engine.store, run.id), 'request')
    await engine.runtime.answer(run.id, request!.requestId, { kind: 'tool', output: 1 }, { input: { go: false } })
    expect(await (await engine.runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed' })
    expect(model.calls).toHaveLength(2)
    await entriesOf(engine.store, run.id)
  } finally {
    await engine.close()
  }
})

test.each([
  ['shorter', [1]],
  ['gone', null],
  ['too long', Array(20).fill(0)],
])('a loop over a list that is %s when its run goes on takes the items it began with', async (_, list) => {
  const ask = `{ id: said, type: llm, config: { model: "script:m", tools: [ask], messages: [{ role: user, content: "ask$n" }] } }`
  const note = `{ id: note, type: output-generator, config: { template: "$n" } }`
  const workflow = `
  - { id: c, type: loop, result: all, config: { over: $input.list, as: n, steps: [${ask}, ${note}] } }
  - ${llm('ask9', ', tools: [ask]')}`
  const { options, model } = live({ workflow, asks: 4 }, '')
  const engine = createEngine(options)
  try {
    const run = await engine.runtime.start('a', { messages, list: [1, 2, 3] })
    // In each of its rounds, and behind it, where it is walked once more for its value.
    for (let asked = 1; asked <= 4; asked++) {
      expect(await (await engine.runtime.open(run.id))!.result).toMatchObject({ outcome: 'suspended' })
      const { requestId } = only(await entriesOf(engine.store, run.id), 'request').at(-1)!
      await engine.runtime.answer(run.id, requestId, { kind: 'tool', output: asked }, { input: { list } })
    }
    const { outcome, output } = await (await engine.runtime.open(run.id))!.result
    expect([outcome, (output as { all: unknown }).all]).toEqual(['completed', [1, 2, 3]])
    expect(model.calls).toHaveLength(8)
    await entriesOf(engine.store, run.id)
  } finally {
    await engine.close()
  }
})

test.each([
  ['another word', { word: 'other' }],
  ['a word that its agent does not take', { word: 4 }],
  ['no agent to call', { who: {} }],
])('a call that has finished stays what it was, though an answer brings %s', async (_, input) => {
  const call = `{ id: call, type: call-agent, result: got, config: { agent: $input.who.id, input: { word: $input.word } } }`
  const asks = llm('pay1', ', tools: [{ name: pay, approval: true }]')
  const child = `
input: { word: string }
workflow: [{ id: said, type: output-generator, result: said, config: { template: "[$input.word]" } }]
return: { said: $said, word: $input.word }
after: [{ id: note, type: output-generator, config: { template: "noted $input.word" } }]`
  // The second time it stands in a call that has not finished, which hands its own input on.
  const outer = `workflow: [${call}, ${asks}, { id: end, type: output-generator, config: { template: "$got" } }]`
  const workflow = `
  - ${call}
  - { id: outer, type: call-agent, result: outer, config: { agent: outer } }
  - { id: end, type: output-generator, config: { template: { got: $got, outer: $outer, word: "$input.word" } } }`
  const { options, ran } = live({ workflow, agents: { child, outer }, asks: 1 }, '')
  const engine = createEngine(options)
  try {
    const run = await engine.runtime.start('a', { messages, who: { id: 'child' }, word: 'first' })
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    const [request] = only(await entriesOf(engine.store, run.id), 'request')
    await engine.runtime.answer(run.id, request!.requestId, { kind: 'approval', approved: true }, { input })
    const { outcome, output } = await (await engine.runtime.open(run.id))!.result
    const word = 'word' in input ? input.word : 'first'
    const got = { said: '[first]', word: 'first' }
    expect([outcome, output]).toEqual(['completed', { got, outer: got, word }])
    expect(ran).toEqual(['call-pay1'])
    const results = only(await entriesOf(engine.store, run.id), 'step-finish').map(({ result }) => result)
    expect(results.filter((result) => String(result).startsWith('noted'))).toEqual(['noted first', 'noted first'])
  } finally {
    await engine.close()
  }
})
