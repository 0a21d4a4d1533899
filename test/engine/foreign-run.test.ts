/**
 * Runs that were recorded elsewhere: no program runs because a recording says so. Every place that goes on with a run from its log has a row here;
 * over HTTP and the other protocols: test/server/foreign-run.test.ts.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import type { Run, Runtime } from '../../src/runtime/runtime.ts'
import { importNdjson } from '../../src/record/transfer/import.ts'
import { exportRun } from '../../src/record/transfer/export.ts'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'
import { agentThat, createStranger, model, ndjson, recordElsewhere, saying, tools } from '../support/foreign.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

/** An engine with an agent `a` of its own, which is not the stranger's. */
function here(options: Partial<EngineOptions> = {}): Engine {
  return (engine = createEngine({
    agents: { a: agentThat('client'), p: agentThat('approval') },
    scripts: { m: saying() },
    tools: tools(),
    ...options,
  }))
}

const requestOf = (entries: readonly Entry[]) => only(entries, 'request')[0]!.requestId
const picked = { kind: 'tool', output: 7 } as const
const refused = { code: 'foreign-run', status: 403 }
const notAccepted = 'It was recorded elsewhere, and nobody here has let it go on.'

interface Case {
  runtime: Runtime
  store: Store
  /** The foreign run, which waits. */
  run: string
  entries: Entry[]
}

/** Ways to go on with it. Each is refused. */
const refusals: Record<string, (given: Case) => Promise<unknown>> = {
  'a fork at its start': ({ runtime, run }) => runtime.fork(run, { at: 1 }),
  'a fork where it waits': ({ runtime, run, entries }) => runtime.fork(run, { at: entries.length }),
  'a fork with another input': ({ runtime, run }) => runtime.fork(run, { at: 1, input: { messages: [] } }),
  'a fork that says no': ({ runtime, run }) => runtime.fork(run, { at: 1, trust: false }),
  'an answer': ({ runtime, run, entries }) => runtime.answer(run, requestOf(entries), picked),
  'an answer through its handle': async ({ runtime, run, entries }) =>
    (await runtime.open(run))!.answer(requestOf(entries), picked),
  'several answers, as the protocols give them': ({ runtime, run, entries }) =>
    runtime.answerAll(run, new Map([[requestOf(entries), picked]])),
}

describe('runs of another process', () => {
  test.each(Object.entries(refusals))('%s is refused, and the message has the cure', async (_, goOn) => {
    const stranger = createStranger()
    const entries = await recordElsewhere(agentThat('client', stranger.evil), 'client')
    const { runtime, store } = here()
    const { id: run } = await importNdjson(store, ndjson(entries))
    const before = await entriesOf(store, run)
    await expect(goOn({ runtime, store, run, entries })).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/recorded elsewhere.*agentId \(a, p\).*may edit agents.*trust: true/u),
    })
    expect(await entriesOf(store, run)).toEqual(before)
    expect(await store.runs.list({})).toHaveLength(1)
    for await (const _message of store.log.inbox(run)) throw new Error('an answer was posted')
    expect(stranger.hasRun()).toBe(false)
  })

  /** Ways in which a process takes over a run. Each ends it, and nothing of it runs. */
  const takeovers: Record<string, (entries: Entry[]) => { entries: Entry[]; shared?: true; post?: object }> = {
    'recovery of a run whose import was cut off': (entries) => ({
      entries: entries.filter(({ seq }) => seq < only(entries, 'request')[0]!.seq),
    }),
    'a deadline that is over': (entries) => ({
      entries: entries.map((entry) => (entry.type === 'request' ? { ...entry, deadline: entry.timestamp + 1 } : entry)),
    }),
    'an answer that nobody has checked': (entries) => ({ entries, post: { answer: picked, protocol: 'api' } }),
    'an answer to another run of this id, which was deleted': (entries) => ({
      entries: entries.map((entry) =>
        entry.type === 'step-start' && entry.step === 'main/first' ? { ...entry, pipeline: 'workflow: []' } : entry,
      ),
      post: {
        answer: picked,
        protocol: 'api',
        accepted: { agent: 'a', pipeline: agentThat('client'), calls: [] },
      },
    }),
    'another process of a fleet': (entries) => ({
      entries: entries.filter(({ seq }) => seq < only(entries, 'request')[0]!.seq),
      shared: true,
    }),
  }

  test.each(Object.entries(takeovers))('%s ends it', async (_, change) => {
    const stranger = createStranger()
    const recorded = await recordElsewhere(`recover: true\n${agentThat('client', stranger.evil)}`, 'client')
    const { entries, shared, post } = change(recorded)
    // As an import writes them that has not come to its end.
    const foreign = entries.map((entry, i) => (i === 0 ? { ...entry, foreign: entries.length } : entry)) as Entry[]
    const first = here({ keep: true })
    const run = only(entries, 'run-start')[0]!.runId
    await first.store.log.append(run, 1, foreign)
    if (post !== undefined) await first.store.log.post(run, `answer:${requestOf(entries)}`, post)
    await first.close()
    const wrapStore = (store: Store): Store => {
      if (shared !== true) return store
      const fleet = {
        ...store.fleet,
        shared: true,
        wanted: async function* (signal: AbortSignal) {
          yield []
          yield [run]
          await new Promise<void>((leave) => signal.addEventListener('abort', () => leave()))
        },
      }
      return { ...store, fleet }
    }
    const { runtime, store } = here({ dir: first.dir, wrapStore })
    await runtime.recover()
    const end = await until(store, run, ({ type }) => type === 'run-end')
    expect(end).toMatchObject({ outcome: 'interrupted', error: { message: notAccepted } })
    expect(only(await entriesOf(store, run), 'resume')).toEqual([])
    expect(stranger.hasRun()).toBe(false)
  })

  test('a stop ends it without a callback that it names', async () => {
    const told: unknown[] = []
    const callbacks = { tell: (event: unknown) => void told.push(event) }
    const yaml = agentThat('client', '', ', onAbort: tell')
    const entries = await recordElsewhere(agentThat('client'), 'client')
    const { runtime, store } = here({ agents: { own: yaml }, callbacks, scripts: { m: model('pick') } })
    const { id } = await importNdjson(
      store,
      ndjson(entries.map((entry) => (entry.type === 'run-start' ? { ...entry, pipeline: yaml } : entry))),
    )
    await runtime.stop(id)
    expect(await until(store, id, ({ type }) => type === 'run-end')).toMatchObject({ outcome: 'aborted' })
    expect(told).toEqual([])
    const own = await runtime.start('own', { messages: [{ role: 'user', content: 'Hi' }] })
    await own.result
    await own.stop()
    await until(store, own.id, ({ type }) => type === 'run-end')
    expect(told).toHaveLength(1)
  })

  /** Goes on with it from its waiting, by a fork or by an answer. */
  const doors: Record<string, (given: Case, consent: { agent?: string; trust?: boolean }) => Promise<Run>> = {
    fork: async ({ runtime, run, entries }, consent) => {
      const forked = await runtime.fork(run, { at: entries.length, ...consent })
      await forked.answer(requestOf(entries), picked)
      return forked
    },
    answer: async ({ runtime, run, entries }, consent) => {
      await runtime.answer(run, requestOf(entries), picked, {}, consent)
      return (await runtime.open(run))!
    },
  }

  test.each(Object.keys(doors))(
    '%s: it goes on with the same text as an agent here, as an agent that is named, or trusted',
    async (door) => {
      const goOn = doors[door]!
      const stranger = createStranger()
      const evil = agentThat('client', stranger.evil)
      const outcome = async (yaml: string, consent: { agent?: string; trust?: boolean }) => {
        const entries = await recordElsewhere(yaml, 'client')
        const { runtime, store, close } = here()
        const { id: run } = await importNdjson(store, ndjson(entries))
        const { id } = await goOn({ runtime, store, run, entries }, consent)
        await until(store, id, ({ type }) => type === 'run-end')
        const log = await entriesOf(store, id)
        const { foreign } = (await store.runs.get(id))!
        expect(foreign).toBe(entries.length)
        await close()
        engine = undefined
        const { agent, pipeline } = only(log, 'resume')[0]!
        return { ran: stranger.hasRun(), agent, pipeline, foreign: only(log, 'run-start')[0]!.foreign }
      }
      const own = { agent: 'a', pipeline: agentThat('client') }
      expect(await outcome(agentThat('client'), {})).toMatchObject({ ran: false, ...own })
      expect(await outcome(evil, { agent: 'a' })).toMatchObject({ ran: false, ...own })
      // The program is a real one: so would it have run above.
      expect(await outcome(evil, { trust: true })).toMatchObject({ ran: true, agent: 'a', pipeline: evil })
    },
  )

  test('an agent that is named must have the steps that have started; for a run of this store none can be named', async () => {
    const entries = await recordElsewhere(agentThat('client'), 'client')
    const { runtime, store } = here({
      agents: {
        other: agentThat('client').replace('first', 'second'),
        a: agentThat('client', '{ id: then, type: output-generator, config: { template: 1 } }'),
      },
      scripts: { m: model('pick') },
    })
    const { id } = await importNdjson(store, ndjson(entries))
    const answer = (run: string, request: string, agent: string) =>
      expect(runtime.answer(run, request, picked, {}, { agent })).rejects
    await answer(id, requestOf(entries), 'other').toMatchObject({ code: 'bad-fork' })
    await answer(id, requestOf(entries), 'none').toMatchObject({ code: 'unknown-agent' })
    const own = await runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
    await own.result
    await answer(own.id, requestOf(await entriesOf(store, own.id)), 'other').toMatchObject({ code: 'bad-input' })
  })

  test('the texts of called agents count, whether their calls are open or have finished', async () => {
    const stranger = createStranger()
    const caller = 'workflow: [{ id: call, type: call-agent, config: { agent: called } }]\n'
    const called = agentThat('client')
    const entries = await recordElsewhere(caller, 'client', { agents: { called } })
    const isCall = (entry: Entry) => entry.type === 'step-start' && entry.step === 'main/call'
    const evil = agentThat('client', stranger.evil)
    const forged = entries.map((entry) => (isCall(entry) ? { ...entry, pipeline: evil } : entry))
    const start = only(entries, 'run-start')[0]!
    const at = { timestamp: start.timestamp, step: 'main/call' }
    const finished = [
      start,
      { ...forged.find(isCall)!, seq: 2 },
      { seq: 3, ...at, type: 'step-finish', duration: 1, result: null },
    ] as Entry[]
    const { runtime, store } = here({ agents: { a: caller, called } })
    for (const [i, recording] of [forged, finished].entries()) {
      const runId = `run_${i}`
      const lines = ndjson(recording.map((entry) => (entry.type === 'run-start' ? { ...entry, runId } : entry)))
      await importNdjson(store, lines)
      const message = expect.stringContaining('step main/call calls an agent that is not the same here')
      for (const consent of [{}, { agent: 'a' }]) {
        await expect(runtime.fork(runId, { at: recording.length, ...consent })).rejects.toMatchObject({
          ...refused,
          message,
        })
      }
      // Before the call nothing of it counts.
      await (
        await runtime.fork(runId, { at: 1 })
      ).result
    }
    await expect(runtime.answer('run_0', requestOf(entries), picked)).rejects.toMatchObject(refused)
    expect(stranger.hasRun()).toBe(false)
    // Both are real: the steps of a call that has finished are walked for its value.
    const trusted = await runtime.fork('run_0', { at: forged.length, trust: true })
    await trusted.answer(requestOf(entries), picked)
    await until(store, trusted.id, ({ type }) => type === 'run-end')
    expect(stranger.hasRun()).toBe(true)
  })

  test('an approval that stands in the recording does not count, nor a call that it says has begun', async () => {
    const paid: unknown[] = []
    const yaml = agentThat('approval')
    const entries = await recordElsewhere(yaml, 'approval')
    const { requestId, step, seq } = only(entries, 'request')[0]!
    const next = { timestamp: entries.at(-1)!.timestamp, step }
    const approved = [
      ...entries.slice(0, seq),
      {
        seq: seq + 1,
        ...next,
        type: 'response',
        requestId,
        outcome: 'answered',
        answer: { kind: 'approval', approved: true, input: { sum: 1e6 } },
        protocol: 'api',
      },
    ] as Entry[]
    const path = `${step.slice(0, step.lastIndexOf('/'))}/9`
    const begun = entries.slice(
      0,
      entries.findIndex((entry) => entry.type === 'step-start' && entry.step === step),
    )
    begun.push({
      seq: begun.length + 1,
      ...next,
      step: path,
      type: 'step-start',
      stepType: 'tool-call',
      kind: 'tool-call',
      attempt: 1,
      toolCallId: 'c1',
      toolName: 'pay',
    } as Entry)
    const { pay } = tools(paid)
    const { runtime, store } = here({ agents: { a: yaml }, tools: { pay: { ...pay, idempotent: true } } })
    for (const [i, recording] of [approved, begun].entries()) {
      const runId = `run_${i}`
      // Cut off: no end closes what is open.
      const cut = recording.map((entry) =>
        entry.type === 'run-start' ? { ...entry, runId, foreign: recording.length } : entry,
      )
      await store.log.append(runId, 1, cut)
      const fork = (options: object) => runtime.fork(runId, { at: recording.length, ...options })
      const failure = (await fork({}).catch((error: unknown) => error)) as Error
      expect(failure).toMatchObject({
        ...refused,
        message: expect.stringMatching(/the tool "pay" may run.*fork it at \d+/u),
      })
      expect(paid).toEqual([])
      // The cure.
      const before = Number(/fork it at (\d+)/u.exec(failure.message)![1])
      expect((await (await runtime.fork(runId, { at: before })).result).outcome).toBe('completed')
      expect(paid).toEqual([])
      expect((await (await fork({ trust: true })).result).outcome).toBe('completed')
      expect(paid.splice(0)).toHaveLength(1)
    }
  })

  test('what was accepted is kept: over the next answer, a restart, a changed agent; not in a fork from before', async () => {
    const stranger = createStranger()
    const second = agentThat('client').split('\n')[1]!.replace('- ', '').trim().replace('first', 'second')
    const entries = await recordElsewhere(`${agentThat('client', second)}  - ${stranger.evil}\n`, 'client')
    const asksAgain = createScriptedModel([
      [text('Done.'), finish()],
      [toolCall('c2', 'pick', {}), finish('tool-calls')],
    ])
    const first = here({ keep: true, scripts: { m: asksAgain } })
    const { id } = await importNdjson(first.store, ndjson(entries))
    const { id: forked } = await first.runtime.fork(id, { at: entries.length, trust: true })
    const before = only(await entriesOf(first.store, forked), 'resume')[0]!.seq - 1
    await first.runtime.answer(forked, requestOf(entries), picked)
    await until(first.store, forked, (entry) => entry.type === 'request' && entry.toolCallId === 'c2')
    await first.close()
    const { runtime, store } = here({ dir: first.dir, agents: { a: agentThat('approval') } })
    await expect(runtime.fork(forked, { at: before })).rejects.toMatchObject(refused)
    expect(stranger.hasRun()).toBe(false)
    const { requestId } = only(await entriesOf(store, forked), 'request').at(-1)!
    await runtime.answer(forked, requestId, picked)
    await until(store, forked, ({ type }) => type === 'run-end')
    expect(stranger.hasRun()).toBe(true)
  })

  test('the mark is the import’s: neither forged nor removed by a recording, gone from an export, there again after an import', async () => {
    const entries = await recordElsewhere(agentThat('client', createStranger().evil), 'client')
    const { runtime, store } = here()
    const start = entries[0]!
    for (const [i, foreign] of [0, entries.length - 2, 1e9].entries()) {
      const id = `run_${i}`
      const lines = ndjson([{ ...start, foreign, runId: id } as unknown as Entry, ...entries.slice(1)])
      await importNdjson(store, lines)
      expect(await store.runs.get(id)).toMatchObject({ foreign: entries.length })
      expect((await entriesOf(store, id))[0]).toMatchObject({ foreign: entries.length })
      expect((await runtime.store.runs.list({ idPrefix: id }))[0]).toMatchObject({ foreign: entries.length })
    }
    // A `resume` of the recording accepts nothing.
    const resume = {
      seq: entries.length + 1,
      timestamp: start.timestamp,
      step: '',
      type: 'resume',
      protocol: 'api',
      agent: 'a',
      pipeline: agentThat('client', createStranger().evil),
    }
    await importNdjson(store, ndjson([{ ...start, runId: 'resumed' } as Entry, ...entries.slice(1), resume as Entry]))
    await expect(runtime.fork('resumed', { at: resume.seq })).rejects.toMatchObject(refused)
    await expect(runtime.fork('resumed', { at: 1 })).rejects.toMatchObject(refused)
    let lines = ''
    for await (const piece of exportRun(store, 'run_0')) lines += piece
    expect(lines).not.toContain('"foreign"')
    // A run of this store stays what it is, whatever is imported under its id.
    const own = await runtime.start('a', { messages: [] })
    await own.result
    let same = ''
    for await (const piece of exportRun(store, own.id)) same += piece
    expect(await importNdjson(store, same)).toMatchObject({
      isNew: false,
      row: expect.not.objectContaining({ foreign: 1 }),
    })
    expect((await store.runs.get(own.id))!.foreign).toBeUndefined()
  })

  /** Who reads a pipeline from a log, and why nothing of a stranger's can run from there. A new reader needs a row here and one in the tables above. */
  const readers: Record<string, string> = {
    'engine/stored-pipeline.ts': 'the parser itself',
    'engine/callbacks.ts': 'the config of a step that was stopped, of a run that was accepted',
    'engine/write-end.ts': 'the callbacks of a stop: not of a foreign run',
    'engine/agent-tools.ts': 'the text of a call that has started: accepted with the run',
    'engine/steps/call-agent.ts': 'the text of a call that has started: accepted with the run',
    'runtime/answer-requests.ts': 'compared with the agent that is named',
    'runtime/can-run.ts': 'whether the names in it are known here',
    'runtime/claim-run.ts': 'resume, recovery, claim, takeover: endUnlessAccepted',
    'runtime/foreign-run.ts': 'what was accepted',
    'runtime/fork-run.ts': 'forks: acceptForeign',
    'runtime/foreign-programs.ts': 'what a recording would set to work, to show it',
    'runtime/own-text.ts': 'what a conversation keeps: nothing that was recorded elsewhere',
    'runtime/tell-run.ts': 'whether the run can be told messages; only an active run is, which was accepted',
    'server/mcp/call-result.ts': 'whether the result of a call is JSON, and what it has after its answer',
    'cli/connection/stored-runs.ts': 'whether a run goes on after a crash, to say so',
  }

  test('nothing else reads a pipeline from a log', () => {
    const root = new URL('../../src/', import.meta.url).pathname
    const found = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => {
      if (!file.endsWith('.ts') || file.includes('.test.')) return false
      return /\breadStored\(|parsePipeline\(recorded/u.test(readFileSync(join(root, file), 'utf8'))
    })
    expect(found.toSorted()).toEqual(Object.keys(readers).toSorted())
  })
})
