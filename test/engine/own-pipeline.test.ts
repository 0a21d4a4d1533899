/** A run that starts with its own YAML: whoever goes on with it, goes on with that text, and so does its conversation, until it is taken back. */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { afterEach, describe, expect, test } from 'vitest'
import { finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only, openEngine, type EngineOptions } from '../support/engine.ts'
import type { Entry } from '../../src/part/entry.ts'
import type { StartOptions } from '../../src/runtime/runtime.ts'
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

const endOf = (entries: readonly Entry[]) => only(entries, 'run-end')[0]!

const close: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const each of close.splice(0)) await each()
})

describe('a run with its own YAML', () => {
  test('its start has the text, its forks go on with it, and the file stays as it is', async () => {
    const { runtime, store } = openEngine(options())
    const run = await runtime.start('a', hello, { pipeline: own, threadId: 't' })
    expect((await run.result).text).toBe('I heard Its own.')
    const [start] = only(await entriesOf(store, run.id), 'run-start')
    expect(start).toMatchObject({ agent: 'a', pipeline: own, ownPipeline: true })
    const fork = await runtime.fork(run.id, { at: 1 })
    expect((await fork.result).text).toBe('I heard Its own.')
    expect(runtime.agents.get('a')!.pipeline.text).toBe(file)
  })

  test('the conversation keeps it until it gets another, or the file is asked for; other conversations and agents never had it', async () => {
    const { runtime, store } = openEngine(options({ agents: { a: file, b: file } }))
    const say = async (agentId: string, threadId: string, more: StartOptions = {}) => {
      const run = await runtime.start(agentId, hello, { threadId, ...more })
      const { text: words } = await run.result
      const [start] = only(await entriesOf(store, run.id), 'run-start')
      return [words.replace('I heard ', ''), start!.ownPipeline ?? false, run.id] as const
    }
    const isOwn = ['Its own.', true, expect.any(String)]
    const isFile = ['The file.', false, expect.any(String)]
    const server = { history: 'server' } as const
    const first = await say('a', 't')
    expect(first).toEqual(isFile)
    expect(await say('a', 't', { pipeline: own, ...server })).toEqual(isOwn)
    expect(await say('a', 't')).toEqual(isOwn)
    // A branch that goes on before the change, one that begins anew, and one that names no thread.
    expect(await say('a', 't', { previousRunId: first[2], ...server })).toEqual(isOwn)
    expect(await say('a', 't', { previousRunId: null, ...server })).toEqual(isOwn)
    const { threadId: _, ...unnamed } = { threadId: 't', previousRunId: first[2], ...server }
    expect((await (await runtime.start('a', hello, unnamed)).result).text).toBe('I heard Its own.')
    expect(await say('b', 't')).toEqual(isFile)
    expect(await say('a', 't')).toEqual(isOwn)
    expect(await say('a', 'other')).toEqual(isFile)
    expect(await say('a', 't', { pipeline: system('Another.') })).toEqual(['Another.', true, expect.any(String)])
    expect(await say('a', 't')).toEqual(['Another.', true, expect.any(String)])
    expect(await say('a', 't', { pipeline: null })).toEqual(isFile)
    expect(await say('a', 't')).toEqual(isFile)
  })

  test('the conversation of a fork goes on with the text that the fork got, or has of its source; as another agent it is that one’s file', async () => {
    const { runtime, store } = openEngine(options({ agents: { a: file, b: system('File of b.') } }))
    const after = async (from: string, more: object) => {
      const fork = await runtime.fork(from, { at: 1, ...more })
      await fork.result
      const { agent: name } = (await store.runs.get(fork.id))!
      const next = await runtime.start(name, hello, { threadId: fork.threadId })
      return (await next.result).text
    }
    const plain = await runtime.start('a', hello)
    await plain.result
    const changed = await runtime.start('a', hello, { pipeline: own })
    await changed.result
    expect(await after(plain.id, {})).toBe('I heard The file.')
    expect(await after(plain.id, { pipeline: own })).toBe('I heard Its own.')
    expect(await after(changed.id, {})).toBe('I heard Its own.')
    expect(await after(changed.id, { pipeline: system('Another.') })).toBe('I heard Another.')
    expect(await after(changed.id, { agent: 'b' })).toBe('I heard File of b.')
    expect(await after(plain.id, { agent: 'b', pipeline: own })).toBe('I heard Its own.')
  })

  test('a text that is no longer accepted stops no conversation', async () => {
    const { runtime, store } = openEngine(options())
    const first = await runtime.start('a', hello, { pipeline: own, threadId: 't' })
    await first.result
    // As an older version has accepted it.
    const [start] = only(await entriesOf(store, first.id), 'run-start')
    await store.log.append('old', 1, [{ ...start!, runId: 'old', pipeline: 'workflow: 1' }])
    await store.log.append('old', 1, [{ ...endOf(await entriesOf(store, first.id)), seq: 2 }])
    await expect(runtime.start('a', hello, { threadId: 't' })).rejects.toMatchObject({
      code: 'bad-pipeline',
      message: expect.stringMatching(/no longer accepts the YAML of this conversation: 1:11 [^]*"pipeline": null/u),
    })
    expect((await (await runtime.start('a', hello, { threadId: 't', pipeline: null })).result).text).toBe(
      'I heard The file.',
    )
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
