/** What a turn costs does not grow with its thread: views of earlier runs are kept, and logs are not read again. */
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { readKept, readView } from '../../src/fold/read-view.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { historyLimit } from '../../src/runtime/conversation.ts'
import { buildRun, startPart } from '../build-run.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { open, ask, user, say, expectKept } from './counted-reads.ts'

/** The entries of one turn of a thread whose history the server has. */
function turnOf(i: number): Entry[] {
  const runId = `run-${i}`
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, source: 'reported' as const }
  const input = { messages: [user(`question ${i}`)] }
  const start = { ...startPart, runId, threadId: 't', input, ...(i > 1 && { previousRunId: `run-${i - 1}` }) }
  return buildRun([
    { step: '', part: start as typeof startPart },
    { step: 'main/a', part: { type: 'step-start', stepType: 'llm', attempt: 1, answer: true } },
    { step: 'main/a/1', part: { type: 'step-start', stepType: 'model-call', attempt: 1 } },
    { step: 'main/a/1', part: { type: 'text-start', id: 't' } },
    { step: 'main/a/1', part: { type: 'text-delta', id: 't', delta: `answer ${i}` } },
    { step: 'main/a/1', part: { type: 'text-end', id: 't' } },
    { step: 'main/a/1', part: { type: 'step-finish', duration: 1 } },
    { step: 'main/a', part: { type: 'step-finish', duration: 1 } },
    { step: '', part: { type: 'run-end', outcome: 'completed', usage } },
  ])
}

describe('stored views', () => {
  test('the view of a very long answer is not kept: to write it would stop other runs, and its log says the same', async () => {
    const megabyte = 'x'.repeat(2 ** 20)
    const told = createTold((prompt) => [
      ...(prompt.length > 1 ? [text('short')] : Array(5).fill(text(megabyte))),
      finish(),
    ])
    const engine = open({ agents: { a: agent('', 'history: server') }, scripts: { m: told } })
    const { store } = engine
    const id = await say(engine, [user('Say much.')], 'server')
    expect(await store.runs.view(id)).toBeUndefined()
    expect((await readView(store, id))?.text).toHaveLength(5 * 2 ** 20)
    expect((await readKept(store, id))?.messages).toHaveLength(1)
    expect(await store.runs.view(id), 'after it was read').toBeUndefined()
    const next = await say(engine, [user('Less.')], 'server')
    expect(JSON.stringify(told.prompts.at(-1))).toContain(megabyte)
    await expectKept(engine, next)
  })

  test('of a very long thread the model is told the newest turns, whole, and the run says so once', async () => {
    const model = createTold((prompt) =>
      prompt.at(-1)!.role === 'tool' ? [text('Done.'), finish()] : [toolCall('c', 'ask', {}), finish('tool-calls')],
    )
    const engine = open({
      agents: { a: agent('tools: [ask]', 'history: server') },
      scripts: { m: model },
      tools: { ask },
    })
    const { runtime, store } = engine
    const turns = historyLimit.messages / 2 + 10
    for (let i = 1; i <= turns; i++) await store.log.append(`run-${i}`, 1, turnOf(i))
    const run = await runtime.start('a', { messages: [user('and now?')] }, { threadId: 't' })
    expect(await run.result).toMatchObject({ outcome: 'suspended' })
    const [request] = (await readKept(store, run.id))!.requests
    await run.answer(request!.requestId, { kind: 'tool', output: 1 })
    expect(await (await runtime.open(run.id))!.result).toMatchObject({ outcome: 'completed' })
    for (const prompt of model.prompts) {
      expect(prompt[0]).toMatchObject({ role: 'user', content: [{ text: 'question 11' }] })
      expect(prompt.filter(({ role }) => role === 'user')).toHaveLength(historyLimit.messages / 2 + 1)
    }
    const warnings = only(await entriesOf(store, run.id), 'warning')
    expect(warnings).toMatchObject([{ code: 'history-cut', step: '' }])
    expect(engine.seen.views).toBeLessThan(3 * turns)
  })
})
