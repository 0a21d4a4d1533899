/** What `GET /api/runs/:id` and the list say of a run that has not ended: what it has cost, and what it did. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, until, type EngineOptions } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const ask = { parameters: { type: 'object', properties: {} } }
/** 10 tokens in and 5 out for each call. */
const pricing = { 'script:m': { input: 1e6, output: 1e6 } }

async function start(options: EngineOptions) {
  const server = await startServer(options)
  onTestFinished(() => server.close())
  const get = async (path: string) => (await (await fetch(server.url + path)).json()) as Record<string, unknown>
  const look = async (id: string) => {
    const { status, cost, usage } = await get(`/api/runs/${id}`)
    const { runs } = (await get('/api/runs')) as { runs: { id: string }[] }
    const row = runs.find((each) => each.id === id)
    return { view: { status, cost, usage }, row }
  }
  return { ...server, get, look }
}

describe('view of a run', () => {
  test.each([
    ['known', pricing, 15, 30],
    ['not known', undefined, undefined, undefined],
  ])('the cost so far, while a run waits, runs and has ended; the price is %s', async (_, prices, first, both) => {
    const gate = latch()
    const model = createScriptedModel([
      [toolCall('c', 'ask', {}), finish('tool-calls')],
      [text('Done.'), gate, finish()],
    ])
    const options = { agents: { a: agent('tools: [ask]') }, scripts: { m: model }, tools: { ask } }
    const { runtime, store, look } = await start(prices === undefined ? options : { ...options, pricing: prices })
    const run = await runtime.start('a', { messages })
    await run.result
    const spent = (status: string, cost: number | undefined, totalTokens: number) => {
      const same = { status, usage: expect.objectContaining({ totalTokens }) }
      return {
        view: { ...same, cost },
        row: cost === undefined ? expect.not.objectContaining({ cost }) : expect.objectContaining({ ...same, cost }),
      }
    }
    expect(await look(run.id)).toEqual(spent('suspended', first, 15))
    const request = await until(store, run.id, ({ type }) => type === 'request')
    await run.answer((request as { requestId: string }).requestId, { kind: 'tool', output: 1 })
    await until(store, run.id, ({ type, seq }) => type === 'text-delta' && seq > request.seq)
    expect(await look(run.id)).toEqual(spent('running', first, 15))
    gate.open()
    await (await runtime.open(run.id))!.result
    expect(await look(run.id)).toEqual(spent('completed', both, 30))
  })

  test('a run that called no model has no cost, waiting or ended', async () => {
    const gate = latch()
    const held = async () => {
      gate.arrive()
      await gate.opened
      return 1
    }
    const { runtime, look } = await start({
      agents: { a: 'workflow: [{ id: x, type: held }]' },
      steps: { held },
      pricing,
    })
    const run = await runtime.start('a', {})
    await gate.reached
    expect((await look(run.id)).view.cost).toBeUndefined()
    gate.open()
    await run.result
    expect((await look(run.id)).view.cost).toBeUndefined()
  })

  test('the respond of a router is no tool call, in the view and in the summary; a tool of that name elsewhere is one', async () => {
    const routed = `
workflow:
  - { id: route, type: router, config: { model: "script:r", tools: [look] }, result: found }
  - { id: answer, type: llm, config: { model: "script:m", stream: true, tools: [respond], messages: "$found.messages" } }
`
    const execute = () => 'seen'
    const { runtime, get } = await start({
      agents: { a: routed },
      scripts: {
        r: createScriptedModel([
          [toolCall('c1', 'look', {}), finish('tool-calls')],
          [toolCall('c2', 'respond', { reason: 'known' }), finish('tool-calls')],
        ]),
        m: createScriptedModel([
          [toolCall('c3', 'respond', {}), finish('tool-calls')],
          [text('Done.'), finish()],
        ]),
      },
      tools: { look: { ...ask, execute }, respond: { ...ask, execute } },
    })
    const run = await runtime.start('a', { messages })
    await run.result
    expect((await get(`/api/runs/${run.id}`)).summary).toMatchObject({ toolCalls: 2, toolResults: 2 })
  })

  test('while it runs: what is known of the cost, that a price is unknown, and the usage by model, step and agent', async () => {
    const gate = latch()
    const agents = {
      a: `
workflow:
  - { id: cheap, type: llm, config: { model: "script:m", messages: "$input.messages" } }
  - { id: other, type: llm, config: { model: "script:x", messages: "$input.messages" } }
  - { id: last, type: llm, config: { model: "script:y", messages: "$input.messages" } }
`,
    }
    const says = () => createScriptedModel([[text('Done.'), finish()]])
    const held = createScriptedModel([[text('Half'), gate, finish()]])
    const { runtime, store, get } = await start({ agents, scripts: { m: says(), x: says(), y: held }, pricing })
    const run = await runtime.start('a', { messages })
    await until(store, run.id, ({ type, step }) => type === 'text-delta' && step.startsWith('main/last'))
    const view = await get(`/api/runs/${run.id}`)
    expect(view).toMatchObject({ status: 'running', knownCost: 15, unpriced: 1, usage: { totalTokens: 30 } })
    expect(view).not.toHaveProperty('cost')
    expect(view['usageByModel']).toMatchObject([
      { model: 'script:m', calls: 1, cost: 15, unpriced: 0 },
      { model: 'script:x', calls: 1, knownCost: 0, unpriced: 1 },
    ])
    expect(view['usageByStep']).toMatchObject([{ step: 'main/cheap' }, { step: 'main/other' }])
    expect(view['usageByAgent']).toMatchObject([{ agent: 'a', calls: 2, usage: { totalTokens: 30 } }])
    expect(view['steps']).toContainEqual(expect.objectContaining({ path: 'main/cheap/1', model: 'script:m', cost: 15 }))
    expect(view['steps']).toContainEqual(expect.objectContaining({ path: 'main/other/1', unpriced: true }))
    gate.open()
    await run.result
    expect(await get(`/api/runs/${run.id}`)).toMatchObject({ knownCost: 15, unpriced: 2, usage: { totalTokens: 45 } })
  })
})
