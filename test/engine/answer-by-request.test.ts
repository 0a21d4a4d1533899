/** Answers by the id of the request, as part of a conversation: approvals, values, and what they must not reach. */
import { describe, onTestFinished, expect, test } from 'vitest'
import { z } from 'zod'
import type { ExecutionContext } from '../../src/engine/registry.ts'
import { continueOrStart, type Turn } from '../../src/runtime/continue.ts'
import type { Reply } from '../../src/part/request-part.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only, type Engine, type EngineOptions } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'

function open(options: EngineOptions): Engine {
  const engine = createEngine(options)
  onTestFinished(() => engine.close())
  return engine
}

const turn = (more: Partial<Turn> = {}): Turn => ({
  agentId: 'a',
  threadId: 't',
  messages: [{ role: 'user', content: 'Pay' }],
  answers: [],
  input: {},
  protocol: 'ag-ui',
  onBusy: 'interrupt',
  history: 'client',
  ...more,
})

/** An agent that pays after approval, and how often it did. */
function paying() {
  const seen = { paid: 0 }
  const pay = { parameters: z.looseObject({}), approval: true, execute: () => `paid ${++seen.paid}` }
  const model = createTold((prompt) =>
    resultsIn(prompt).size === 0
      ? [toolCall('c', 'pay', {}), finish('tool-calls')]
      : [text(JSON.stringify(resultsIn(prompt).get('c'))), finish()],
  )
  return { seen, engine: open({ agents: { a: agent('tools: [pay]') }, tools: { pay }, scripts: { m: model } }) }
}

async function asked({ runtime }: Engine, threadId = 't') {
  const { run } = await continueOrStart(runtime, turn({ threadId }))
  await run.result
  const suspend = only(await entriesOf(runtime.store, run.id), 'suspend')
  return { run, requestId: suspend.at(-1)!.requests[0]! }
}

const yes: Reply = { kind: 'approval', approved: true }

describe('answer by request id', () => {
  test('an approval by its id, which may be a function of the kind: the tool runs once, and the same request joins later', async () => {
    const { engine, seen } = paying()
    const { run, requestId } = await asked(engine)
    const kinds: string[] = []
    const answer = (kind: string) => (kinds.push(kind), yes)
    const again = turn({ answers: [{ requestId, answer }], turnKey: 'r2' })
    const resumed = await continueOrStart(engine.runtime, again)
    expect(resumed).toMatchObject({ how: 'resumed', run: { id: run.id } })
    expect(kinds).toEqual(['approval'])
    expect(await resumed.run.result).toMatchObject({ outcome: 'completed' })
    // The run has ended: the key of the turn is what leads back to it.
    expect(await continueOrStart(engine.runtime, again)).toMatchObject({ how: 'joined', run: { id: run.id } })
    expect(await engine.store.runs.list({ threadId: 't' })).toHaveLength(1)
    // Also when the thread has gone on.
    const next = await continueOrStart(engine.runtime, turn({ messages: [{ role: 'user', content: 'And now?' }] }))
    await next.run.result
    expect(await continueOrStart(engine.runtime, again)).toMatchObject({ how: 'joined', run: { id: run.id } })
    expect(seen.paid).toBe(1)
  })

  test('the id of a request of another thread answers nothing', async () => {
    const { engine, seen } = paying()
    const { run, requestId } = await asked(engine, 'hers')
    const other = await continueOrStart(
      engine.runtime,
      turn({ threadId: 'his', answers: [{ requestId, answer: yes }] }),
    )
    expect(other.how).toBe('started')
    await other.run.result
    expect((await engine.store.runs.get(run.id))?.status).toBe('suspended')
    // Nor while his thread waits for an answer of his own.
    await continueOrStart(engine.runtime, turn({ threadId: 'his', answers: [{ requestId, answer: yes }] }))
    expect((await engine.store.runs.get(run.id))?.status).toBe('suspended')
    expect(seen.paid).toBe(0)
  })

  test('a second answer that is another is refused, while the first one works', async () => {
    const { engine } = paying()
    const { requestId } = await asked(engine)
    const no: Reply = { kind: 'approval', approved: false }
    const send = (answer: Reply) => continueOrStart(engine.runtime, turn({ answers: [{ requestId, answer }] }))
    const all = await Promise.allSettled([send(yes), send(no)])
    const refused = all.filter(({ status }) => status === 'rejected')
    expect(refused).toMatchObject([{ reason: { code: 'answer-conflict', status: 409 } }])
  })

  test('a value of a step: checked against the schema of the question, and cancelled if there will be none', async () => {
    const book = async (_: unknown, context: ExecutionContext) => ({
      city: await context.request({ message: 'Which city?', schema: { type: 'string' } }),
    })
    const agents = { a: 'workflow:\n  - { id: book, type: book, config: {}, result: booked }\nreturn: "$booked"\n' }
    const engine = open({ agents, steps: { book } })
    const answer = (threadId: string, requestId: string, given: Reply) =>
      continueOrStart(engine.runtime, turn({ threadId, answers: [{ requestId, answer: given }] }))

    const first = await asked(engine, 'one')
    const misfit = answer('one', first.requestId, { kind: 'input', value: 7 })
    await expect(misfit).rejects.toMatchObject({ code: 'bad-input', status: 400 })
    await expect(answer('one', first.requestId, yes)).rejects.toMatchObject({ code: 'bad-input', status: 400 })
    const told = await answer('one', first.requestId, { kind: 'input', value: 'Rome' })
    expect(await told.run.result).toMatchObject({
      outcome: 'completed',
      output: { city: { outcome: 'answered', value: 'Rome' } },
    })

    const second = await asked(engine, 'two')
    const none = await answer('two', second.requestId, { kind: 'input', cancelled: true })
    expect(none.how).toBe('resumed')
    expect((await none.run.result).outcome).not.toBe('suspended')
    expect(only(await entriesOf(engine.store, second.run.id), 'response')).toMatchObject([
      { outcome: 'answered', answer: { kind: 'input', cancelled: true } },
    ])
  })
})
