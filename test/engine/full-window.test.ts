/** When the window is full: the older messages are summarized, the log keeps all of them, and the run goes on. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { EndpointProtocol } from '../../src/models/providers.ts'
import { entriesOf, only, openEngine, type EngineOptions } from '../support/engine.ts'
import {
  startStrictServer,
  strictProtocols,
  type AskedModel,
  type StrictAnswer,
  type StrictOptions,
} from '../support/strict-model-server.ts'

/** A page of about 200 tokens that differs each time. */
const page = (n: number) =>
  `Page ${n} of the archive. ${Array.from({ length: 30 }, (_, i) => `Entry ${n * 31 + i} was filed on shelf ${i}.`).join(' ')}`

const isSummary = ({ system }: AskedModel) => system.startsWith('You shorten')
const callsIn = ({ turns }: AskedModel) => turns.reduce((sum, { calls }) => sum + calls.length, 0)
const usersIn = ({ turns }: AskedModel) => turns.filter(({ role }) => role === 'user').map(({ text }) => text)

interface Opened extends Partial<StrictOptions> {
  protocol?: EndpointProtocol
  config?: string
  context?: string
  options?: Partial<EngineOptions>
  top?: string
}

/** An agent that reads pages, on a server that refuses what does not fit. */
async function open({
  protocol = 'anthropic',
  config = '',
  context = 'context: { window: 32k, keep: 4k }',
  ...more
}: Opened) {
  const { options, top = 'history: server', answer = () => ({ text: 'ok' }), ...strict } = more
  const server = await startStrictServer({ window: 32_000, ...strict, answer })
  onTestFinished(() => server.close())
  let pages = 0
  const engine = openEngine({
    agents: {
      a: `${top}
workflow:
  - id: answer
    type: llm
    config:
      model: "box:m"
      stream: true
      retries: 0
      maxSteps: 1000
      system: "You read the archive."
      tools: [read]
      ${context}
      ${config}`,
    },
    tools: { read: { parameters: z.looseObject({}), execute: () => page(++pages) } },
    models: { endpoints: [{ name: 'box', baseURL: server.baseURL, protocol }] },
    ...options,
  })
  const ask = async (content: string, more: object = {}) => {
    const run = await engine.runtime.start(
      'a',
      { messages: [{ role: 'user', content }] },
      { threadId: 't', history: 'server', ...more },
    )
    return { id: run.id, result: await run.result, entries: await entriesOf(engine.store, run.id) }
  }
  return { ...engine, server, ask, read: () => pages }
}

/** Reads until it has read so many pages. How many it has read stands in what it is told, or in the summary. */
function reading(most: number): (asked: AskedModel) => StrictAnswer {
  let read = 0
  return (asked) => {
    if (isSummary(asked))
      return { text: `The task: count the pages. ${read} pages were read so far. The code word is heron.` }
    if (read >= most) return { text: `I was told: ${usersIn(asked)[0]}` }
    read++
    return { thinks: 'Another one.', calls: [{ name: 'read', input: { page: read } }] }
  }
}

describe('a long tool loop', () => {
  test(
    'of 500 rounds goes through a window of 32k; the model can tell the first task',
    { timeout: 120_000 },
    async () => {
      const { ask, server, read } = await open({ answer: reading(500) })
      const { result, entries } = await ask('Count the pages of the archive.')
      expect(result).toMatchObject({ outcome: 'completed' })
      expect(server.refused).toEqual([])
      expect(read()).toBe(500)
      expect(result.text).toContain('I was told: Count the pages of the archive.')
      const made = only(entries, 'summarized')
      expect(made.length).toBeGreaterThan(2)
      // Cut deep, not often.
      expect(made.length).toBeLessThan(20)
      for (const { before, after, reason, text } of made) {
        expect(before).toBeGreaterThan(24_000)
        expect(after).toBeLessThan(12_000)
        expect(reason).toBe('full')
        expect(text).toContain('heron')
      }
      expect(made.map(({ upTo }) => upTo)).toEqual(made.map(({ upTo }) => upTo).toSorted((a, b) => a - b))
      // The newest pages are never lost: the model is told the page that it has just read, and the ones before it.
      for (const asked of server.requests.filter((each) => !isSummary(each) && callsIn(each) > 0)) {
        expect(asked.tokens).toBeLessThan(32_000)
        expect(usersIn(asked)[0]).toBe('Count the pages of the archive.')
        expect(asked.turns.at(-1)!.results[0]!.text).toContain('of the archive.')
      }
      // The log has all that happened.
      expect(only(entries, 'tool-result')).toHaveLength(500)
    },
  )
})

describe.each(strictProtocols)('over %s', (protocol) => {
  test('a summary before a call, with signed rounds and handed-on state, is a legal request', async () => {
    const { ask, server } = await open({
      protocol,
      window: 9000,
      context: 'context: { window: 9k, keep: 2k }',
      config: 'reasoning: low',
      answer: reading(60),
    })
    const { result, entries } = await ask('Count the pages.')
    expect(result).toMatchObject({
      outcome: 'completed',
      text: expect.stringContaining('I was told: Count the pages.'),
    })
    expect(server.refused).toEqual([])
    const [first] = only(entries, 'summarized')
    expect(first).toMatchObject({ step: 'main/answer', reason: 'full' })
    // The step stands below the loop, with prompt, usage and end.
    const step = only(entries, 'step-start').find(({ stepType }) => stepType === 'summary')!
    expect(step).toMatchObject({ kind: 'summary', covers: first!.upTo })
    const below = entries.filter((entry) => entry.step.startsWith(`${step.step}/`))
    expect(below.map(({ type }) => type)).toEqual(expect.arrayContaining(['prompt', 'usage', 'step-finish']))
    const told = server.requests[server.requests.findIndex(isSummary) + 1]!
    expect(usersIn(told)[1]).toContain('The code word is heron.')
    expect(usersIn(told)).toHaveLength(2)
  })

  test('an overflow: a summary, and the same call once more, with a retry', async () => {
    const { ask, server } = await open({ protocol, window: 6000, context: 'context: {}', answer: reading(30) })
    const { result, entries } = await ask('Count the pages.')
    expect(result).toMatchObject({ outcome: 'completed' })
    expect(server.refused.map(({ why }) => why)).toEqual(['too long'])
    const [first, second] = only(entries, 'summarized')
    expect(first).toMatchObject({ reason: 'overflow' })
    // From then on the window is known.
    expect(second).toMatchObject({ reason: 'full' })
    const [retry] = only(entries, 'retry')
    expect(retry!.error.code).toBe('model-refused')
    expect(retry!.seq).toBeGreaterThan(first!.seq)
  })
})
