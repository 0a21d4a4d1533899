/** What a turn costs does not grow with its thread: views of earlier runs are kept, and logs are not read again. */
import { describe, expect, test } from 'vitest'
import type { Message } from '../../src/part/message.ts'
import { readKept, readView } from '../../src/fold/read-view.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { continueOrStart } from '../../src/runtime/continue.ts'
import { agent } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { open, ask, user, say, expectKept } from './counted-reads.ts'

describe('stored views', () => {
  test.each(['client', 'server'] as const)(
    'a turn reads as much of logs after 50 runs as after 5 (history: %s)',
    async (history) => {
      const model = createTold((prompt) => [text(`answer ${prompt.length}`), finish()])
      const engine = open({ agents: { a: agent('', `history: ${history}`) }, scripts: { m: model } })
      let said: Message[] = []
      const costs: (typeof engine.seen)[] = []
      for (let i = 0; i <= 50; i++) {
        const before = { ...engine.seen }
        const messages = [...said, user(`question ${i}`)]
        const id = await say(engine, messages, history)
        const { logs, entries, whole, views } = engine.seen
        costs.push({
          logs: logs - before.logs,
          entries: entries - before.entries,
          whole: whole - before.whole,
          views: views - before.views,
        })
        // A client names the last two answers.
        if (history === 'client') {
          said = [...messages.slice(-3), { role: 'assistant', id, content: [{ type: 'text', text: 'as shown' }] }]
        }
      }
      expect(costs[50]).toEqual(costs[5])
      expect(costs[50]!.whole).toBe(0)
      if (history === 'client') return
      // Another process reads each view once, and of logs only the first run's input.
      const again = open({ agents: { a: agent('', 'history: server') }, scripts: { m: model }, dir: engine.dir })
      await say(again, [user('last')], history)
      expect(again.seen.whole).toBe(0)
      expect(again.seen.views).toBeLessThan(60)
      expect(model.prompts.at(-1)!.filter(({ role }) => role === 'user')).toHaveLength(52)
    },
  )

  test('a view is kept at each suspend and at the end, also of a run that ends without owner', async () => {
    const engine = open({
      agents: { a: agent('tools: [ask]') },
      scripts: {
        m: createTold((prompt) =>
          prompt.at(-1)!.role === 'tool' ? [text('Done.'), finish()] : [toolCall('c', 'ask', {}), finish('tool-calls')],
        ),
      },
      tools: { ask },
    })
    const { runtime, store } = engine
    for (const how of ['answered', 'stopped']) {
      const run = await runtime.start('a', { messages: [user('Hi')] })
      expect(await run.result).toMatchObject({ outcome: 'suspended' })
      await expectKept(engine, run.id)
      const { requests, status } = (await readKept(store, run.id))!
      expect({ status, asked: requests.map(({ toolCallId }) => toolCallId) }).toEqual({
        status: 'suspended',
        asked: ['c'],
      })
      if (how === 'answered') await run.answer(requests[0]!.requestId, { kind: 'tool', output: 1 })
      else await run.stop()
      await (await runtime.open(run.id))!.result
      await expectKept(engine, run.id)
    }
  })

  test('what tools have given counts as well', async () => {
    const large = { rows: Array.from({ length: 5 }, () => ({ text: 'x'.repeat(2 ** 20) })) }
    const told = createTold((prompt) =>
      prompt.length > 1 ? [text('done'), finish()] : [toolCall('c1', 'load', {}), finish('tool-calls')],
    )
    const tools = { load: { ...ask, description: 'Loads.', execute: () => Promise.resolve(large) } }
    const engine = open({ agents: { a: agent('tools: [load]') }, scripts: { m: told }, tools })
    const id = await say(engine, [user('Load.')], 'client')
    expect(await engine.store.runs.view(id)).toBeUndefined()
    expect(JSON.stringify((await readView(engine.store, id))?.messages)).toContain('x'.repeat(100))
  })

  test('an answer to a client tool reads the log once: when the run goes on', async () => {
    const names = ['c', 'd']
    const engine = open({
      agents: { a: agent('tools: [ask]') },
      scripts: {
        m: createTold((prompt) => {
          const name = names[prompt.filter(({ role }) => role === 'tool').length]
          return name === undefined ? [text('Done.'), finish()] : [toolCall(name, 'ask', {}), finish('tool-calls')]
        }),
      },
      tools: { ask },
    })
    const turn = { agentId: 'a', threadId: 't', input: {}, protocol: 'ui', onBusy: 'queue', history: 'client' } as const
    const first = await continueOrStart(engine.runtime, { ...turn, messages: [user('Hi')], answers: [] })
    await first.run.result
    const answer = async (toolCallId: string, output: string) => {
      engine.seen.whole = 0
      const answers = [{ toolCallId, answer: { kind: 'tool', output } as const }]
      const { run, how } = await continueOrStart(engine.runtime, { ...turn, messages: [], answers })
      const { outcome } = await run.result
      return { how, outcome, readings: engine.seen.whole }
    }
    expect(await answer('c', 'yes')).toMatchObject({ how: 'resumed', outcome: 'suspended' })
    expect(await answer('c', 'yes')).toEqual({ how: 'joined', outcome: 'suspended', readings: 0 })
    await expect(answer('c', 'no')).rejects.toMatchObject({ code: 'answer-conflict' })
    expect(engine.seen.whole).toBe(0)
    expect(await answer('d', 'yes')).toEqual({ how: 'resumed', outcome: 'completed', readings: 1 })
  })
})
