/** Tasks of MCP servers: their ids are in the log before the first poll, and no call is made twice, whatever happens to the process. */
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Entry, EntryOf } from '../../src/part/entry.ts'
import { progressWords } from '../../src/fold/progress-words.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { pollDelay, pollTimer, retryDelay } from '../../src/tools/mcp/poll-timer.ts'
import { startTaskServer, type TaskServer } from '../../src/tools/mcp/testing/task-server.ts'
import { sdkOverStdio } from '../../src/tools/mcp/testing/sdk.ts'
import { createJournal } from '../../src/tools/mcp/testing/everything.ts'
import {
  agent,
  createEngine,
  entriesOf,
  newFolder,
  only,
  taken,
  until,
  type Engine,
  type EngineOptions,
} from '../support/engine.ts'
import { createTold, plant, readAll, resultsIn } from '../support/going-on.ts'

let server: TaskServer
/** What was waited for between polls, in ms. A poll comes when the test lets it. */
let waited: number[]
let gate: PromiseWithResolvers<void> | undefined

beforeEach(async () => {
  server = await startTaskServer()
  waited = []
  gate = undefined
  vi.spyOn(pollTimer, 'wait').mockImplementation(async (ms, signal) => {
    waited.push(ms)
    const stopped = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
      if (signal.aborted) reject(signal.reason as Error)
    })
    stopped.catch(() => undefined)
    await Promise.race([gate?.promise, stopped])
  })
})
afterEach(async () => {
  vi.restoreAllMocks()
  await server.close()
})

const options = (more: object = {}): EngineOptions => ({
  agents: {
    a: agent('tools: [s_slow]', 'recover: true'),
    step: 'recover: true\nworkflow: [{ id: answer, type: mcp-tool, config: { server: s, tool: slow, input: {} } }]',
  },
  scripts: {
    m: createTold((prompt) =>
      resultsIn(prompt).size === 0
        ? [...toolCall('c1', 's_slow', {}), finish('tool-calls')]
        : [text(JSON.stringify([...resultsIn(prompt).values()])), finish()],
    ),
  },
  mcpServers: { s: { url: server.url, elicitation: true, ...more } },
})

function open(given: EngineOptions): Engine {
  const engine = createEngine(given)
  onTestFinished(() => engine.close())
  return engine
}

const input = { messages: [{ role: 'user', content: 'Hi' }] }
const done = { status: 'completed', result: { content: [{ type: 'text', text: 'All done.' }] } }
const colour = {
  method: 'elicitation/create',
  params: { message: 'Which?', requestedSchema: { type: 'object', properties: { colour: { type: 'string' } } } },
}

describe('a task', () => {
  test.each(['a', 'step'])('is polled to its end (%s), and its id is in the log before the first poll', async (id) => {
    gate = Promise.withResolvers()
    const engine = open(options())
    const run = await engine.runtime.start(id, input)
    await vi.waitFor(() => expect(waited).toHaveLength(1))
    // Sealed: only this store reads it.
    const entries = await entriesOf(engine.store, run.id)
    expect(only(entries, 'step-start').at(-1)).toMatchObject({ stepType: 'mcp-task' })
    expect(only(entries, 'step-finish').at(-1)!.result).toEqual({ state: 'task', kept: expect.any(String) })
    expect(JSON.stringify(entries)).not.toContain('task-of-the-server')
    expect(server.count('tasks/get')).toBe(0)
    server.set(done)
    gate.resolve()
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    const after = await entriesOf(engine.store, run.id)
    if (id === 'a') expect(only(after, 'tool-result')[0]).toMatchObject({ result: 'All done.', isError: false })
    else expect(only(after, 'run-end')[0]!.output).toBe('All done.')
    expect(server.count('tools/call')).toBe(1)
    const [call, get] = ['tools/call', 'tasks/get'].map((method) => server.told.find((each) => each.method === method)!)
    expect(call!.capabilities).toMatchObject({ extensions: { 'io.modelcontextprotocol/tasks': {} } })
    expect([get!.name, get!.params]).toEqual([[...server.tasks.keys()][0], { taskId: [...server.tasks.keys()][0] }])
  })

  test.each([
    [
      'failed',
      { status: 'failed', error: { code: -32603, message: 'Out of paper.' } },
      /failed at its task: Out of paper\./u,
    ],
    ['cancelled', { status: 'cancelled' }, /has cancelled its task/u],
    ['an error result', { status: 'completed', result: { ...done.result, isError: true } }, /^All done\.$/u],
    ['no result', { status: 'completed' }, /ended a task without a result/u],
    ['a status that does not exist', { status: 'lazy' }, /without a valid taskId and status/u],
  ])('that ends as %s is an error result for the model', async (_, change, words) => {
    server.set(change)
    const engine = open(options())
    const run = await engine.runtime.start('a', input)
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    const [result] = only(await entriesOf(engine.store, run.id), 'tool-result')
    expect(result).toMatchObject({ isError: true, result: expect.stringMatching(words) })
  })

  test.each(['a', 'step'])('its words while it works are in the log (%s), and no model is told them', async (id) => {
    gate = Promise.withResolvers()
    server.set({ statusMessage: 'Copies\u202e rows' })
    const engine = open(options())
    const run = await engine.runtime.start(id, input)
    await vi.waitFor(() => expect(waited).toHaveLength(1))
    const path = id === 'a' ? 'main/answer/2' : 'main/answer'
    const said =
      id === 'a'
        ? { type: 'tool-result', toolCallId: 'c1', result: 'Copies rows', preliminary: true }
        : { type: 'data', name: 'progress', id: path, data: 'Copies rows', transient: true }
    const told = async () => (await entriesOf(engine.store, run.id)).filter((entry) => progressWords(entry))
    expect(await told()).toMatchObject([{ step: path, ...said }])
    server.set(done)
    gate.resolve()
    expect(await run.result).toMatchObject({ outcome: 'completed' })
    expect(await told()).toHaveLength(1)
    const { text: answer } = await run.result
    expect(answer).not.toContain('Copies')
  })

  test('its words are no result: a fork behind them needs the role that has approved the call', async () => {
    server.set({ statusMessage: 'Copies rows' })
    const engine = open({
      ...options(),
      agents: { a: agent('tools: [{ name: s_slow, approval: { roles: [operator] } }]', 'recover: true') },
    })
    const run = await engine.runtime.start('a', input)
    await run.result
    const [request] = only(await entriesOf(engine.store, run.id), 'request')
    const by = { id: 'olga', roles: ['operator' as const] }
    await engine.runtime.answer(run.id, request!.requestId, { kind: 'approval', approved: true }, { by })
    const { seq } = await until(engine.store, run.id, (entry) => progressWords(entry) !== undefined)
    server.set(done)
    await until(engine.store, run.id, ({ type }) => type === 'run-end')
    const fork = engine.runtime.fork(run.id, { at: seq, user: { id: 'u', roles: ['user'] } })
    await expect(fork).rejects.toMatchObject({
      code: 'bad-fork',
      message: expect.stringContaining('needs the role operator'),
    })
  })

  test('is not polled before its id is stored', async () => {
    const latch = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    onTestFinished(() => latch.resolve())
    const wrapStore: EngineOptions['wrapStore'] = (store) => ({
      ...store,
      log: {
        ...store.log,
        async append(run, epoch, given) {
          const entries = taken(given)
          if (entries.some((entry) => entry.type === 'step-start' && entry.stepType === 'mcp-answer')) {
            held.resolve()
            await latch.promise
          }
          return store.log.append(run, epoch, entries)
        },
      },
    })
    server.set(done)
    const engine = open({ ...options(), wrapStore })
    const run = await engine.runtime.start('a', input)
    await held.promise
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect([waited, server.count('tasks/get')]).toEqual([[], 0])
    latch.resolve()
    expect(await run.result).toMatchObject({ outcome: 'completed' })
  })

  test('is polled when its server wants it, within bounds; a server that is away is asked again', async () => {
    expect([undefined, 0, 300, 1e9, Number.NaN].map(pollDelay)).toEqual([2000, 250, 300, 60_000, 2000])
    expect([1, 2, 20].map(retryDelay)).toEqual([500, 1000, 60_000])
    server.set({ pollIntervalMs: 777 })
    server.fail('tasks/get', 503)
    server.fail('tasks/get', 503)
    const engine = open(options())
    const run = await engine.runtime.start('a', input)
    await vi.waitFor(() => expect(waited.length).toBeGreaterThan(4))
    server.set(done)
    await run.result
    expect(waited.slice(0, 4)).toEqual([777, 500, 1000, 777])
    expect(only(await entriesOf(engine.store, run.id), 'tool-result')[0]!.result).toBe('All done.')
  })

  test('that takes longer than taskTimeout is cancelled', async () => {
    const engine = open(options({ taskTimeout: '1ms' }))
    const run = await engine.runtime.start('a', input)
    await run.result
    const [result] = only(await entriesOf(engine.store, run.id), 'tool-result')
    expect(result).toMatchObject({ isError: true, result: expect.stringContaining('taskTimeout') })
    expect(server.count('tasks/cancel')).toBe(1)
  })

  test('is cancelled by a stop, while it is polled and while it asks', async () => {
    gate = Promise.withResolvers()
    const engine = open(options())
    const polled = await engine.runtime.start('a', input)
    await vi.waitFor(() => expect(waited).toHaveLength(1))
    await polled.stop()
    expect(await polled.result).toMatchObject({ outcome: 'aborted' })
    await vi.waitFor(() => expect(server.count('tasks/cancel')).toBe(1))
    gate = undefined
    server.set({ status: 'input_required', inputRequests: { q: colour } })
    const asks = await engine.runtime.start('a', input)
    await until(engine.store, asks.id, ({ type }) => type === 'suspend')
    await engine.runtime.stop(asks.id, 'Enough.')
    await until(engine.store, asks.id, ({ type }) => type === 'run-end')
    await vi.waitFor(() => expect(server.count('tasks/cancel')).toBe(2))
  })

  test('is not declared to servers that have none, nor to legacy ones', async () => {
    const journal = createJournal()
    onTestFinished(() => journal.remove())
    const engine = open({
      ...options(),
      agents: { a: agent('tools: [l_echo]') },
      mcpServers: { l: sdkOverStdio(journal) },
    })
    expect((await (await engine.runtime.start('a', input)).result).outcome).toBe('completed')
  })
})

const copySeals = async ({ store }: Engine, dir: string) => {
  const copy = sqliteStore(join(dir, 'millrace.db'))
  for await (const { key, message } of store.log.inbox('mcp:seals')) await copy.log.post('mcp:seals', key, message)
  await copy.close()
}

/** Answers what the run asks, and waits for its end. */
async function seeToTheEnd(engine: Engine, run: string): Promise<EntryOf<'run-end'>> {
  for (;;) {
    const at = await until(engine.store, run, ({ type }) => type === 'run-end' || type === 'suspend')
    if (at.type === 'run-end') return at as EntryOf<'run-end'>
    const entries = await readAll(engine, run)
    const answered = new Set(only(entries, 'response').map(({ requestId }) => requestId))
    for (const { requestId } of only(entries, 'request')) {
      if (!answered.has(requestId))
        await engine.runtime.answer(run, requestId, { kind: 'input', value: { colour: 'red' } })
    }
    await until(engine.store, run, ({ type, seq }) => type === 'run-end' || (type === 'resume' && seq > at.seq))
    const later = await until(
      engine.store,
      run,
      ({ type, seq }) => seq > at.seq && (type === 'run-end' || type === 'suspend'),
    )
    if (later.type === 'run-end') return later as EntryOf<'run-end'>
  }
}

test.each(['a', 'step'])(
  'the process ends behind each entry of a run (%s): it goes on, and the call is made once',
  { timeout: 120_000 },
  async (id) => {
    server.set({ status: 'input_required', inputRequests: { q: structuredClone(colour) } })
    const first = open(options())
    const run = await first.runtime.start(id, input)
    await until(first.store, run.id, ({ type }) => type === 'suspend')
    server.set({ result: done.result })
    const [request] = only(await readAll(first, run.id), 'request')
    expect(request).toMatchObject({ kind: 'input', metadata: { server: 's', tool: 'slow', mode: 'form' } })
    await first.runtime.answer(run.id, request!.requestId, { kind: 'input', value: { colour: 'red' } })
    await vi.waitFor(() => expect(server.count('tasks/update')).toBe(1))
    expect(server.told.find(({ method }) => method === 'tasks/update')!.params['inputResponses']).toEqual({
      q: { action: 'accept', content: { colour: 'red' } },
    })
    server.set({ status: 'completed' })
    await until(first.store, run.id, ({ type }) => type === 'run-end')
    const entries = await readAll(first, run.id)
    const accepted = entries.findIndex(
      (entry) => entry.type === 'step-finish' && JSON.stringify(entry.result)?.includes('"task"'),
    )
    expect(accepted).toBeGreaterThan(2)
    for (let k = 1; k < entries.length; k++) {
      const [task] = server.tasks.values()
      // As the server has it when the process is gone: the question is open until it was answered.
      Object.assign(task!, { status: 'completed', inputRequests: {} })
      const calls = server.count('tools/call')
      server.set({ status: 'completed', inputRequests: {}, result: done.result })
      const dir = newFolder()
      await plant(dir, entries.slice(0, k))
      await copySeals(first, dir)
      const engine = createEngine({ ...options(), dir })
      await engine.runtime.recover()
      const end = await seeToTheEnd(engine, run.id)
      const made = server.count('tools/call') - calls
      const wasStarted = entries.slice(0, k).some((entry) => isCallStart(entry, id))
      expect([k, made], `killed behind entry ${k}`).toEqual([k, wasStarted ? 0 : 1])
      if (k > accepted)
        expect(
          JSON.stringify(id === 'a' ? only(await readAll(engine, run.id), 'tool-result')[0]!.result : end.output),
        ).toBe('"All done."')
      await engine.close()
    }
  },
)

function isCallStart(entry: Entry, id: string): boolean {
  return entry.type === 'step-start' && (id === 'step' ? entry.stepType === 'mcp-tool' : entry.kind === 'tool-call')
}
