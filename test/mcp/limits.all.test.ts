/** A caller has at most 1,000 active tasks. */
import { expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text } from '../../src/models/testing/scripted-model.ts'
import type { Entry } from '../../src/part/entry.ts'
import { agent } from '../support/engine.ts'
import { postModern, withTasks, type Rpc } from '../support/mcp.ts'
import { startServer } from '../support/server.ts'

test('one more is 429, and a call that is no task is answered', async () => {
  const script = Array.from({ length: 3 }, () => [text('a'), finish()])
  const server = await startServer({ agents: { desk: agent() }, scripts: { m: createScriptedModel(script) } })
  onTestFinished(() => server.close())
  const plant = (protocol: string, n: number) => {
    const start = { runId: `run_${n}`, agent: 'desk', pipeline: agent(), threadId: `thread_${n}`, protocol, input: {} }
    const entry = { type: 'run-start', seq: 1, timestamp: Date.now(), ...start } as unknown as Entry
    return server.store.log.append(`run_${n}`, 1, [entry])
  }
  for (let n = 1; n < 1000; n++) await plant('mcp', n)
  const call = async (capabilities: object) => {
    const response = await postModern(
      server,
      'tools/call',
      { name: 'desk', arguments: { message: 'Hi' } },
      { capabilities },
    )
    return { status: response.status, said: await response.text(), retry: response.headers.get('retry-after') }
  }
  expect((await call(withTasks)).status).toBe(200)
  await plant('mcp', 1000)
  const refused = await call(withTasks)
  expect([refused.status, refused.retry]).toEqual([429, '5'])
  expect((JSON.parse(refused.said) as Rpc).error?.data).toEqual({ code: 'too-many-tasks' })
  expect((await call({})).status).toBe(200)
})
