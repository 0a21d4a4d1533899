/** What a model, a tool or a log nests too deep for code that recurses ends no process, no thread and no run without its end. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { maxDepth, tooDeep } from '../../src/part/json.ts'
import {
  createScriptedModel,
  finish,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { createHandler } from '../../src/server/handler.ts'
import { agent, createEngine, entriesOf, only, type EngineOptions } from '../support/engine.ts'

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
const deepObject = (levels: number) => {
  let value: unknown = 'core'
  for (let i = 0; i < levels; i++) value = [value]
  return value
}
const hello = [{ role: 'user' as const, content: 'Hello' }]

function engineOf(calls: ScriptStep[][], yaml: string, options: Partial<EngineOptions> = {}) {
  const model = createScriptedModel(calls)
  const engine = createEngine({ ...options, agents: { a: yaml }, scripts: { m: model } })
  onTestFinished(() => engine.close())
  return { ...engine, model }
}

describe('depth of agents', () => {
  test.each([300, 5000, 100_000])(
    'a streamed object that is opened %d times fails its run and nothing else',
    async (levels) => {
      const unhandled: unknown[] = []
      const note = (error: unknown) => unhandled.push(error)
      process.on('unhandledRejection', note)
      onTestFinished(() => void process.off('unhandledRejection', note))
      const answer = [text(...'['.repeat(levels).match(/.{1,997}/gu)!), finish()]
      const { runtime, store } = engineOf(
        Array.from({ length: 4 }, () => answer),
        agent('output: {schema: {type: array}}\nretries: 0'),
      )
      const run = await runtime.start('a', { messages: hello })
      expect(await run.result).toMatchObject({ outcome: 'failed', error: { code: 'bad-output' } })
      await new Promise(setImmediate)
      expect(unhandled).toEqual([])
      expect((await entriesOf(store, run.id)).at(-1)?.type).toBe('run-end')
    },
  )

  test.each([maxDepth, 300, 3000, 8000, 100_000])(
    'arguments %d levels deep are answered to the model, and the thread goes on',
    async (levels) => {
      const { runtime, store, model } = engineOf(
        [
          [toolCall('c1', 'take', nested(levels)), finish('tool-calls')],
          [text('Done.'), finish()],
          [text('Again.'), finish()],
        ],
        agent('tools: [take]', 'history: server'),
        { tools: { take: { parameters: {}, execute: () => 'taken' } } },
      )
      const run = await runtime.start('a', { messages: hello }, { threadId: 't' })
      expect(await run.result).toMatchObject({ outcome: 'completed' })
      const [result] = only(await entriesOf(store, run.id), 'tool-result')
      if (levels === maxDepth) expect(result).toMatchObject({ result: 'taken' })
      else
        expect(result).toMatchObject({
          isError: true,
          result: expect.stringContaining('nested deeper than 256 levels'),
        })
      const next = await runtime.start('a', { messages: hello }, { threadId: 't' })
      expect(await next.result).toMatchObject({ outcome: 'completed', text: 'Again.' })
      expect(JSON.stringify(model.calls[2]!.options.prompt)).toContain('Done.')
      const response = await createHandler({ runtime, authorize: () => true })(new Request('http://x/api/threads/t'))
      expect(response.status).toBe(200)
    },
  )

  const strange: [name: string, make: () => unknown, kept: unknown][] = [
    ['8,000 levels deep', () => deepObject(8000), expect.anything()],
    ['100,000 levels deep', () => deepObject(100_000), expect.anything()],
    [
      'a cycle',
      () => {
        const ring: unknown[] = []
        ring.push(ring)
        return ring
      },
      ['[circular]'],
    ],
    ['a BigInt', () => ({ n: 1n }), { n: '1' }],
    [
      'a toJSON that throws',
      () => ({
        toJSON() {
          throw new Error('no')
        },
      }),
      '[not JSON: no]',
    ],
  ]

  test.each(strange)('a tool that returns %s does no harm', async (_, make, kept) => {
    const { runtime, store } = engineOf(
      [
        [toolCall('c1', 'give'), finish('tool-calls')],
        [text('Done.'), finish()],
      ],
      agent('tools: [give]'),
      { tools: { give: { parameters: {}, execute: () => make() } } },
    )
    const run = await runtime.start('a', { messages: hello })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect(only(await entriesOf(store, run.id), 'tool-result')[0]?.result).toEqual(kept)
  })

  test.each(strange)('a step that returns %s, or emits it, does no harm', async (_, make) => {
    const yaml = `workflow: [{id: one, type: give, result: one}, {id: two, type: output-generator, config: {template: {one: $one}}}]`
    const { runtime, store } = engineOf([], yaml, {
      steps: {
        give: (_config, { emit }) => {
          emit({ type: 'data', name: 'x', data: make() })
          return make()
        },
      },
    })
    const run = await runtime.start('a', { messages: hello })
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    expect(JSON.stringify(await entriesOf(store, run.id))).not.toBe('')
  })

  test.each(strange)('a provider that notes %s beside its answer does no harm', async (_, make) => {
    const odd = make() as never
    const { runtime, store } = engineOf(
      [
        [
          { type: 'text-start', id: '1', providerMetadata: { p: { odd } } },
          { type: 'text-delta', id: '1', delta: 'Hi', providerMetadata: { p: { odd } } },
          { type: 'text-end', id: '1', providerMetadata: { p: { odd } } },
          { type: 'raw', rawValue: odd },
          { type: 'custom', kind: 'p.x', providerMetadata: { p: { odd } } },
          {
            type: 'finish',
            finishReason: { unified: 'stop', raw: undefined },
            usage: {
              inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
              outputTokens: { total: 1, text: 1, reasoning: undefined },
              raw: odd,
            },
            providerMetadata: { p: { odd } },
          },
        ],
      ],
      agent(),
    )
    const run = await runtime.start('a', { messages: hello })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Hi' })
    expect((await entriesOf(store, run.id)).at(-1)?.type).toBe('run-end')
  })

  test.each(strange)('a model that gives the arguments of a call as a value, %s, does no harm', async (_, make) => {
    const { runtime, store } = engineOf(
      [
        [{ type: 'tool-call', toolCallId: 'c1', toolName: 'take', input: make() as never }, finish('tool-calls')],
        [text('Done.'), finish()],
      ],
      agent('tools: [take]'),
      { tools: { take: { parameters: {}, execute: () => 'taken' } } },
    )
    const run = await runtime.start('a', { messages: hello })
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    await entriesOf(store, run.id)
  })

  test.each<[string, () => unknown, unknown]>([['plain JSON', () => 'yes', 'yes'], ...strange])(
    'an answer that is given to a client tool as %s, in the same process, wakes the run',
    async (_, make) => {
      const { runtime, store } = engineOf(
        [
          [toolCall('c1', 'ask'), finish('tool-calls')],
          [text('Done.'), finish()],
        ],
        agent('tools: [ask]'),
        { tools: { ask: { parameters: {} } } },
      )
      const run = await runtime.start('a', { messages: hello })
      expect((await run.result).outcome).toBe('suspended')
      const { requestId } = only(await entriesOf(store, run.id), 'request')[0]!
      await run.answer(requestId, { kind: 'tool', output: make() })
      expect(await (await runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed' })
    },
    5000,
  )

  test('a log of an older version, with values that are too deep, can be read and gone on with', async () => {
    const yaml = agent('tools: [take]', 'recover: true\nhistory: server')
    const tools = { take: { parameters: {}, execute: () => 'taken' } }
    const first = createEngine({ agents: { a: yaml }, tools, keep: true })
    const deep = nested(3000)
    const at = (seq: number, step: string, part: object) => ({ seq, timestamp: seq, step, ...part }) as unknown as Entry
    const start = {
      type: 'run-start',
      runId: 'r1',
      agent: 'a',
      pipeline: yaml,
      threadId: 't',
      protocol: 'api',
      input: { messages: hello },
    }
    await first.store.log.append('r1', 1, [
      at(1, '', start),
      at(2, 'main/answer', { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }),
      at(3, 'main/answer/1', { type: 'step-start', stepType: 'model-call', attempt: 1 }),
      at(4, 'main/answer/1', { type: 'prompt', stage: 'response', model: 'script:m', messages: hello }),
      at(5, 'main/answer', { type: 'data', name: 'output', id: 'x', data: deepObject(3000) }),
      at(6, 'main/answer/1', { type: 'tool-call', toolCallId: 'c1', toolName: 'take', input: nested(8000) }),
      at(7, 'main/answer/1', { type: 'tool-call', toolCallId: 'c2', toolName: 'take', input: deep }),
      at(8, 'main/answer/1', {
        type: 'tool-result',
        toolCallId: 'c2',
        toolName: 'take',
        result: deepObject(3000),
        isError: false,
      }),
    ])
    await first.close()

    const model = createScriptedModel([
      [text('Back.'), finish()],
      [text('Next.'), finish()],
    ])
    const second = createEngine({ agents: { a: yaml }, scripts: { m: model }, tools, dir: first.dir })
    onTestFinished(() => second.close())
    await second.runtime.recover()
    const run = (await second.runtime.open('r1'))!
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Back.' })
    const entries = await entriesOf(second.store, 'r1')
    expect(JSON.stringify(entries.find(({ seq }) => seq === 8))).toContain(tooDeep)
    const response = await createHandler({ runtime: second.runtime, authorize: () => true })(
      new Request('http://x/api/threads/t'),
    )
    expect(response.status).toBe(200)
    const next = await second.runtime.start('a', { messages: hello }, { threadId: 't' })
    expect(await next.result).toMatchObject({ outcome: 'completed', text: 'Next.' })
  })
})
