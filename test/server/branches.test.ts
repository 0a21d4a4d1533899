/** `POST /api/runs` with `previousRunId`: another answer, an edited message, and the branches of a thread. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine } from '../support/engine.ts'

const answers = ['one', 'two', 'two again', 'new one', 'after new', 'x']

function serve() {
  const model = createScriptedModel(answers.map((answer) => [text(answer), finish()]))
  const engine = createEngine({
    agents: { a: agent(), own: `history: client\n${agent()}` },
    scripts: { m: model },
  })
  onTestFinished(() => engine.close())
  const handler = createHandler({ runtime: engine.runtime, authorize: () => true })
  async function call<T>(path: string, body?: object, headers = {}): Promise<T> {
    const json = { 'content-type': 'application/json', ...headers }
    const init = body && { method: 'POST', headers: json, body: JSON.stringify(body) }
    return (await (await handler(new Request(`http://x${path}`, init))).json()) as T
  }
  async function say(content: string, more: object = {}, headers = {}): Promise<string> {
    const input = { messages: [{ role: 'user', content }] }
    const { id, error } = await call<{ id?: string; error?: { message: string } }>(
      '/api/runs',
      { agentId: 'a', threadId: 't', input, ...more },
      headers,
    )
    if (id === undefined) throw new Error(error!.message)
    await (await engine.runtime.open(id))!.result
    return id
  }
  /** What the model was told last. */
  const told = () =>
    model.calls
      .at(-1)!
      .options.prompt.map(({ content }) =>
        typeof content === 'string' ? content : content.map((part) => ('text' in part ? part.text : '')).join(''),
      )
  return { ...engine, call, say, told }
}

describe('parallel branches', () => {
  test('a branch continues the run it names; later messages continue the newest run; each row names the run before it', async () => {
    const { say, told, call } = serve()
    const first = await say('first')
    const second = await say('second')
    const again = await say('second', { previousRunId: first })
    expect(told()).toEqual(['first', 'one', 'second'])
    // The first message, edited: its thread begins anew.
    const edited = await say('edited', { previousRunId: null })
    expect(told()).toEqual(['edited'])
    const last = await say('go on')
    expect(told()).toEqual(['edited', 'new one', 'go on'])
    // Without a thread, that of the run which it continues.
    const { threadId } = await call<{ threadId: string }>('/api/runs', {
      agentId: 'a',
      previousRunId: again,
      input: { messages: [{ role: 'user', content: 'third' }] },
    })
    expect(threadId).toBe('t')
    const { runs, messages } = await call<{ runs: { id: string; previousRunId?: string }[]; messages: unknown[] }>(
      '/api/threads/t',
    )
    expect(runs.slice(1).map(({ id, previousRunId }) => [id, previousRunId])).toEqual([
      [last, edited],
      [edited, undefined],
      [again, first],
      [second, first],
      [first, undefined],
    ])
    expect(runs[0]).toMatchObject({ previousRunId: again })
    expect(messages.length).toBeGreaterThanOrEqual(5)
  })

  test('the same request again joins its run; a run of another thread, or none, is refused', async () => {
    const { say } = serve()
    const first = await say('first')
    const key = { 'idempotency-key': 'k' }
    const branch = await say('second', { previousRunId: first }, key)
    expect(await say('second', { previousRunId: first }, key)).toBe(branch)
    await expect(say('x', { threadId: 'other', previousRunId: first })).rejects.toThrow(
      `previousRunId must be a run of thread other; ${first} is one of thread t.`,
    )
    await expect(say('x', { previousRunId: 'run_none' })).rejects.toThrow('previousRunId names no run: run_none.')
    await expect(say('x', { previousRunId: '' })).rejects.toThrow('previousRunId must be a string')
    await expect(say('x', { agentId: 'own', previousRunId: first })).rejects.toThrow('history: client')
    await expect(say('x', { previosRunId: first })).rejects.toThrow('did you mean "previousRunId"')
  })
})
