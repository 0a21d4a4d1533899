/** A server is killed at each entry of a run, and started again: the client polls on with its task, and sees it to the end. */
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { agent, newFolder, type EngineOptions } from '../support/engine.ts'
import { createTold, plant, readAll, resultsIn } from '../support/going-on.ts'
import { askModern, withTasks } from '../support/mcp.ts'
import { startServer, type TestServer } from '../support/server.ts'

const capabilities = { ...withTasks, elicitation: { form: {} } }
const effects: string[] = []
const wipe = {
  description: 'Wipes a disk',
  parameters: { type: 'object' } as never,
  approval: true,
  execute(_input: unknown, { runId }: { runId: string }) {
    effects.push(runId)
    return 'wiped'
  },
}

const options = (): EngineOptions => ({
  agents: { desk: agent('tools: [wipe]', 'recover: true') },
  tools: { wipe },
  scripts: {
    m: createTold((prompt) => {
      if (resultsIn(prompt).size > 0) return [text('All '), text('done.'), finish()]
      return [text('I ask. '), ...toolCall('c1', 'wipe', {}), finish('tool-calls')]
    }),
  },
})

async function open(dir?: string): Promise<TestServer> {
  const server = await startServer({ ...options(), ...(dir !== undefined && { dir }) }, { mcp: { taskAfter: 0 } })
  onTestFinished(() => server.close())
  return server
}

/** Polls until the task has ended, and answers what it asks. */
async function seeToTheEnd(
  server: TestServer,
  taskId: string,
): Promise<{ end: Record<string, unknown>; seen: Set<unknown> }> {
  const seen = new Set<unknown>()
  const end = await vi.waitFor(async () => {
    const { result, error } = await askModern(server, 'tasks/get', { taskId }, { capabilities })
    expect(error).toBeUndefined()
    seen.add(result!['status'])
    if (result!['status'] === 'input_required') {
      const keys = Object.keys(result!['inputRequests'] as object)
      const yes = { action: 'accept', content: { approved: true } }
      const inputResponses = Object.fromEntries(keys.map((key) => [key, yes]))
      await askModern(server, 'tasks/update', { taskId, inputResponses }, { capabilities })
    }
    if (result!['status'] !== 'completed') throw new Error(`the task is ${String(result!['status'])}`)
    return result!
  })
  return { end, seen }
}

test('a task is seen to its end wherever its server was killed, and its tool runs at most once', async () => {
  const first = await open()
  const params = { name: 'desk', arguments: { message: 'Hi' } }
  const taskId = (await askModern(first, 'tools/call', params, { capabilities })).result!['taskId'] as string
  const whole = await seeToTheEnd(first, taskId)
  expect(whole.seen).toContain('input_required')
  const [run] = await first.store.runs.list()
  const entries = await readAll(first, run!.id)
  expect(entries.length).toBeGreaterThan(15)
  for (let k = 1; k < entries.length; k++) {
    effects.length = 0
    const dir = newFolder()
    await plant(dir, entries.slice(0, k))
    await copySeals(first, dir)
    const server = await open(dir)
    await server.runtime.recover()
    const { end } = await seeToTheEnd(server, taskId)
    expect(JSON.stringify(end['result']), `killed behind entry ${k}`).toContain('All done.')
    expect(effects.length, `killed behind entry ${k}`).toBeLessThanOrEqual(1)
    const again = (await askModern(server, 'tasks/get', { taskId }, { capabilities })).result
    expect(again).toEqual(end)
    await server.close()
  }
})

/** What a store keeps besides runs. */
async function copySeals({ store }: TestServer, dir: string): Promise<void> {
  const copy = sqliteStore(join(dir, 'millrace.db'))
  for await (const { key, message } of store.log.inbox('mcp:seals')) await copy.log.post('mcp:seals', key, message)
  await copy.close()
}
