/** Messages into a running turn, told to servers of all four protocols that refuse a wrong order as the services do. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { latch, type Latch } from '../../src/models/testing/scripted-model.ts'
import { openEngine } from '../support/engine.ts'
import { startStrictServer, strictProtocols } from '../support/strict-model-server.ts'
import { watchInbox } from '../support/steering.ts'

const yaml = `
history: server
workflow:
  - id: answer
    type: llm
    config: { model: "box:m", stream: true, reasoning: low, retries: 0, tools: [look, read] }`

const parameters = z.looseObject({})

function heldTool(tool: Latch, result: string) {
  const execute = async () => {
    tool.arrive()
    await tool.opened
    return result
  }
  return { parameters, execute }
}

describe.each(strictProtocols)('%s', (protocol) => {
  test('takes a message behind all results of a round, behind the last words, and in the next run', async () => {
    const tool = latch()
    const words = latch()
    const inbox = watchInbox()
    const server = await startStrictServer({
      answer({ turns }) {
        const asked = turns.filter(({ role }) => role === 'user').length
        if (asked === 1) return { thinks: 'Hm', text: 'I look.', calls: [{ name: 'look' }, { name: 'read' }] }
        return asked === 2 ? { text: ['Found. ', words, 'Done.'] } : { text: 'Good.' }
      },
    })
    onTestFinished(() => server.close())
    const { runtime } = openEngine({
      agents: { a: yaml },
      tools: {
        look: { parameters, execute: () => 'seen' },
        read: heldTool(tool, 'read'),
      },
      models: { endpoints: [{ name: 'box', baseURL: server.baseURL, protocol }] },
      wrapStore: inbox.wrapStore,
    })
    const run = await runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] }, { threadId: 't' })
    await tool.reached
    await runtime.tell(run.id, { id: 'm1', content: 'Only the last year' })
    await inbox.heard('m1')
    tool.open()
    await Promise.race([words.reached, run.result])
    await runtime.tell(run.id, { id: 'm2', content: 'And the other?' })
    await inbox.heard('m2')
    words.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'I look.Found. Done.Good.' })
    const next = await runtime.start(
      'a',
      { messages: [{ role: 'user', content: 'Thanks' }] },
      { threadId: 't', history: 'server' },
    )
    expect(await next.result).toMatchObject({ outcome: 'completed' })
    expect(server.refused).toEqual([])
    // The round has begun with a thought of this model: it goes on thinking.
    if (protocol === 'anthropic') expect(server.requests[1]!.body).toHaveProperty('thinking')
    const told = server.requests.at(-1)!.turns.filter(({ role }) => role === 'user')
    expect(told.map(({ text }) => text)).toEqual(['Hi', 'Only the last year', 'And the other?', 'Thanks'])
    // Both results stand before the message.
    const at = server.requests[1]!.turns.findIndex(({ text }) => text === 'Only the last year')
    const results = server.requests[1]!.turns.slice(0, at).flatMap((turn) => turn.results)
    expect(results.map(({ text }) => text).join(' ')).toMatch(/seen.*read/u)
  })

  test('takes two messages behind a round that began without a thought', async () => {
    const tool = latch()
    const inbox = watchInbox()
    const server = await startStrictServer({
      answer: ({ turns }) =>
        turns.some(({ role }) => role === 'tool') ? { text: 'Good.' } : { text: 'I look.', calls: [{ name: 'look' }] },
    })
    onTestFinished(() => server.close())
    const { runtime } = openEngine({
      agents: { a: yaml.replace('[look, read]', '[look]') },
      tools: { look: heldTool(tool, 'seen') },
      models: { endpoints: [{ name: 'box', baseURL: server.baseURL, protocol }] },
      wrapStore: inbox.wrapStore,
    })
    const run = await runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    await tool.reached
    await runtime.tell(run.id, { id: 'm1', content: 'Only the last year' })
    await runtime.tell(run.id, { id: 'm2', content: 'and shorter' })
    await inbox.heard('m1', 'm2')
    tool.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'I look.Good.' })
    expect(server.refused).toEqual([])
  })
})
