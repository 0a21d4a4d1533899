/** A run that starts with its own YAML: whoever goes on with it, goes on with that text, and the next run is the file's again. */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { afterEach, describe, expect, test } from 'vitest'
import { finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only, openEngine, type EngineOptions } from '../support/engine.ts'
import { createTold, cutAfter } from '../support/going-on.ts'
import { toldWords, watchInbox } from '../support/steering.ts'

const hello = { messages: [{ role: 'user', id: 'u1', content: 'Hi' }] }
const system = (words: string, more = '') => agent(`system: "${words}"\n${more}`, 'recover: true\n')
const file = system('The file.')
const own = system('Its own.')

const systemIn = (prompt: LanguageModelV4Prompt) =>
  prompt.flatMap((message) => (message.role === 'system' ? [message.content] : [])).join(' ')

/** Says what it was told. */
const echo = () => createTold((prompt) => [text(`I heard ${systemIn(prompt)}`), finish()])
const options = (more: Partial<EngineOptions> = {}): EngineOptions => ({
  agents: { a: file },
  scripts: { m: echo() },
  ...more,
})

const close: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const each of close.splice(0)) await each()
})

describe('a run with its own YAML', () => {
  test('its start has the text, its forks go on with it, the next run of its thread does not', async () => {
    const { runtime, store } = openEngine(options())
    const run = await runtime.start('a', hello, { pipeline: own, threadId: 't' })
    expect((await run.result).text).toBe('I heard Its own.')
    const [start] = only(await entriesOf(store, run.id), 'run-start')
    expect(start).toMatchObject({ agent: 'a', pipeline: own, ownPipeline: true })
    const fork = await runtime.fork(run.id, { at: 1 })
    expect((await fork.result).text).toBe('I heard Its own.')
    const next = await runtime.start('a', hello, { threadId: 't' })
    expect((await next.result).text).toBe('I heard The file.')
    expect(only(await entriesOf(store, next.id), 'run-start')[0]).not.toHaveProperty('ownPipeline')
    expect(runtime.agents.get('a')!.pipeline.text).toBe(file)
  })

  test('a text with mistakes, an input that it does not declare, an agent that is not here: nothing is stored', async () => {
    const { runtime, store } = openEngine(options())
    const start = (id: string, pipeline: string) => runtime.start(id, { ...hello, city: 'Rome' }, { pipeline })
    await expect(start('a', 'workflow: 1')).rejects.toMatchObject({ faults: [{ line: 1, column: 11 }] })
    const input = 'input: { type: object, properties: { town: { type: string } }, additionalProperties: false }\n'
    await expect(start('a', input + own)).rejects.toMatchObject({ code: 'bad-input' })
    await expect(start('b', own)).rejects.toMatchObject({ code: 'unknown-agent' })
    expect(await store.runs.list({})).toEqual([])
  })

  test('its policies are those of its text', async () => {
    const m = createTold((prompt) => [text(toldWords(prompt).join(' | ')), finish()])
    const { runtime } = openEngine(options({ scripts: { m } }))
    const pipeline = `history: server\n${own.trimStart()}`
    const first = await runtime.start('a', hello, { pipeline, threadId: 't' })
    await first.result
    const said = { messages: [{ role: 'user', content: 'And now?' }] }
    const second = await runtime.start('a', said, { pipeline, threadId: 't', previousRunId: first.id })
    expect((await second.result).text).toContain('user: Hi')
    await expect(
      runtime.start('a', said, { pipeline: pipeline.replace('server', 'client'), previousRunId: first.id }),
    ).rejects.toMatchObject({ code: 'bad-input' })
  })

  test('behind a crash at any entry it goes on with its text', async () => {
    const whole = openEngine(options())
    const run = await whole.runtime.start('a', hello, { pipeline: own })
    await run.result
    const entries = await entriesOf(whole.store, run.id)
    for (let k = 1; k < entries.length; k++) {
      const m = echo()
      const engine = await cutAfter(entries, k, options({ scripts: { m } }))
      close.push(() => engine.close())
      await engine.runtime.recover()
      const result = await (await engine.runtime.open(run.id))!.result
      expect([k, result.outcome, result.text]).toEqual([k, 'completed', 'I heard Its own.'])
      for (const prompt of m.prompts) expect(systemIn(prompt)).toBe('Its own.')
    }
  })

  test('a request that waits through a restart is answered, and its text goes on', async () => {
    const asks = () =>
      createTold((prompt) =>
        prompt.at(-1)!.role === 'tool'
          ? [text(`I heard ${systemIn(prompt)}`), finish()]
          : [toolCall('c', 'where'), finish('tool-calls')],
      )
    const client = 'tools: [{ name: where, client: true, description: Where, parameters: { type: object } }]'
    const pipeline = system('Its own.', client)
    const first = createEngine(options({ scripts: { m: asks() }, keep: true }))
    const run = await first.runtime.start('a', hello, { pipeline })
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    await first.close()
    const second = openEngine(options({ scripts: { m: asks() }, dir: first.dir }))
    await second.runtime.recover()
    const [request] = only(await entriesOf(second.store, run.id), 'request')
    await second.runtime.answer(run.id, request!.requestId, { kind: 'tool', output: 'Here' })
    expect((await (await second.runtime.open(run.id))!.result).text).toBe('I heard Its own.')
  })

  test('a message that comes too late for it begins a run with the same text', async () => {
    const words = latch()
    const inbox = watchInbox()
    const m = createTold((prompt) => [text(`I heard ${systemIn(prompt)}. `), words, finish()])
    const { runtime, store } = openEngine(options({ scripts: { m }, wrapStore: inbox.wrapStore }))
    const run = await runtime.start('a', hello, { pipeline: own, threadId: 't' })
    await words.reached
    await runtime.tell(run.id, { id: 'm1', content: 'Later', mode: 'queue' })
    await inbox.heard('m1')
    words.open()
    await run.result
    const [message] = only(await entriesOf(store, run.id), 'message')
    const next = message!.runId!
    await expect.poll(async () => (await store.runs.get(next))?.status).toBe('completed')
    expect(only(await entriesOf(store, next), 'run-start')[0]).toMatchObject({ pipeline: own, ownPipeline: true })
    expect((await (await runtime.open(next))!.result).text).toContain('Its own.')
    // One that nobody saw, behind a fork that went on as something else.
    const changed = system('The fork.')
    const fork = await runtime.fork(run.id, { at: 1, pipeline: changed })
    await fork.result
    await store.log.post(fork.id, 'message:m9', { mode: 'queue', content: 'Last', protocol: 'api', sentAt: 1 })
    await runtime.recover()
    const thread = fork.threadId
    const texts = async () =>
      (await store.runs.list({ threadId: thread })).map(({ title, status }) => `${title} ${status}`)
    await expect.poll(texts).toEqual(['Last completed', 'Hi completed'])
    const [last] = await store.runs.list({ threadId: thread, limit: 1 })
    expect(only(await entriesOf(store, last!.id), 'run-start')[0]).toMatchObject({ pipeline: changed })
  })
})
