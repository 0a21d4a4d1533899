/** A call that is not a task and whose run asks something: the client answers in the call, in each era. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { McpOptions } from '../../src/server/mcp/settings.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { askModern, connectMcp, modes, type Rpc } from '../support/mcp.ts'

let server: TestServer
afterEach(() => server.close())

const wipe = {
  description: 'Wipes a disk',
  parameters: { type: 'object', properties: { disk: { type: 'string' } } } as never,
  approval: true,
  execute: () => 'wiped',
}
const elicitation = { elicitation: { form: {} } }

/** Asks for one approval in its first answer, or for two; then says what came of them. */
async function serve({ calls = 1, ...mcp }: McpOptions & { calls?: number } = {}): Promise<void> {
  const asks = Array.from({ length: calls }, (_, i) => toolCall(`c${i}`, 'wipe', { disk: `d${i}` })).flat()
  const m = createScriptedModel([
    [text('I ask. '), ...asks, finish('tool-calls')],
    [text('Done.'), finish()],
  ])
  server = await startServer({ agents: { desk: agent('tools: [wipe]') }, scripts: { m }, tools: { wipe } }, { mcp })
}

const resultsOf = async (run: string) => {
  const results: unknown[] = []
  for await (const batch of server.store.log.read(run)) {
    for (const entry of batch) if (entry.type === 'tool-result') results.push(entry.result)
  }
  return results
}

describe.for(modes)('an approval in mode %s', (mode) => {
  async function answer(reply: object) {
    const client = await connectMcp(server, mode, { capabilities: elicitation })
    const asked: Record<string, unknown>[] = []
    client.setRequestHandler('elicitation/create', (request) => {
      asked.push(request.params)
      return reply as never
    })
    const result = await client.callTool({ name: 'desk', arguments: { message: 'Hi' } })
    return { result, asked, run: (await server.store.runs.list())[0]!.id }
  }

  test('is asked with the agent, the tool and its arguments, and accepted', async () => {
    await serve()
    const { result, asked, run } = await answer({ action: 'accept', content: { approved: true } })
    expect(JSON.stringify(result.content)).toContain('Done.')
    expect(asked).toHaveLength(1)
    expect(asked[0]!['message']).toMatch(/desk[^]*wipe[^]*d0/u)
    expect(await resultsOf(run)).toEqual(['wiped'])
    expect(await server.store.runs.list()).toHaveLength(1)
  })

  test('is denied by decline', async () => {
    await serve()
    const { result, run } = await answer({ action: 'decline' })
    expect(JSON.stringify(result.content)).toContain('Done.')
    expect(await resultsOf(run)).not.toContain('wiped')
  })

  test('is denied by cancel, because nobody could be asked', async () => {
    await serve()
    const { run } = await answer({ action: 'cancel' })
    expect(JSON.stringify(await resultsOf(run))).toContain('Nobody could be asked.')
  })

  test('stays open after cancel with onCancel: wait, for other protocols', async () => {
    await serve({ onCancel: 'wait' })
    const answered = answer({ action: 'cancel' })
    await vi.waitFor(async () => {
      const [run] = await server.store.runs.list()
      expect(run?.status).toBe('suspended')
    })
    const [run] = await server.store.runs.list()
    const { requests } = (await server.store.runs.view(run!.id))!.view as { requests: { requestId: string }[] }
    await server.runtime.answer(run!.id, requests[0]!.requestId, { kind: 'approval', approved: true })
    expect(JSON.stringify((await answered).result.content)).toContain('Done.')
    expect(await resultsOf(run!.id)).toEqual(['wiped'])
  })

  test('two at once are two questions', async () => {
    await serve({ calls: 2 })
    const { asked, run } = await answer({ action: 'accept', content: { approved: true } })
    expect(asked).toHaveLength(2)
    expect(await resultsOf(run)).toEqual(['wiped', 'wiped'])
  })

  test('content that does not fit is asked again', async () => {
    await serve()
    const client = await connectMcp(server, mode, { capabilities: elicitation })
    const replies = [{ approved: 'perhaps' }, { approved: true }]
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: replies.shift() }) as never)
    const result = await client.callTool({ name: 'desk', arguments: { message: 'Hi' } })
    expect(JSON.stringify(result.content)).toContain('Done.')
    expect(replies).toEqual([])
  })
})

describe('requestState', () => {
  const call = { name: 'desk', arguments: { message: 'Hi' } }
  const ask = (params: object) => askModern(server, 'tools/call', { ...call, ...params }, { capabilities: elicitation })
  const yes = { action: 'accept', content: { approved: true } }

  async function asking(): Promise<{ requestState: string; keys: string[]; first: Rpc }> {
    const first = await ask({})
    const { requestState, inputRequests, resultType } = first.result!
    expect(resultType).toBe('input_required')
    return { requestState: requestState as string, keys: Object.keys(inputRequests as object), first }
  }

  test('the same retry twice: both get the end, and one run was started', async () => {
    await serve()
    const { requestState, keys } = await asking()
    const retry = () => ask({ requestState, inputResponses: { [keys[0]!]: yes } })
    const ends = await Promise.all([retry(), retry()])
    for (const { result } of ends) expect(JSON.stringify(result?.['content'])).toContain('Done.')
    expect(JSON.stringify((await retry()).result?.['content'])).toContain('Done.')
    expect(await server.store.runs.list()).toHaveLength(1)
  })

  test('a retry with some answers: the rest is asked again', async () => {
    await serve({ calls: 2 })
    const { requestState, keys } = await asking()
    expect(keys).toHaveLength(2)
    const second = await ask({ requestState, inputResponses: { [keys[0]!]: yes } })
    expect(second.result).toMatchObject({ resultType: 'input_required' })
    expect(Object.keys(second.result!['inputRequests'] as object)).toEqual([keys[1]])
    const state = second.result!['requestState']
    const third = await ask({ requestState: state, inputResponses: { [keys[1]!]: yes } })
    expect(JSON.stringify(third.result?.['content'])).toContain('Done.')
  })

  test('a retry without answers is asked again, and starts nothing', async () => {
    await serve()
    const { requestState, keys } = await asking()
    const again = await ask({ requestState })
    expect(Object.keys(again.result!['inputRequests'] as object)).toEqual(keys)
    expect(await server.store.runs.list()).toHaveLength(1)
  })

  test('that was changed, or is of another call, is -32602', async () => {
    await serve()
    const { requestState, keys } = await asking()
    const inputResponses = { [keys[0]!]: yes }
    const changed = `${requestState.slice(0, -2)}${requestState.endsWith('AA') ? 'BB' : 'AA'}`
    for (const params of [
      { requestState: changed },
      { requestState: 7 },
      { requestState: 'x' },
      { requestState, arguments: { message: 'Ho' } },
    ]) {
      expect((await ask({ inputResponses, ...params })).error).toMatchObject({ code: -32602 })
    }
    const [run] = await server.store.runs.list()
    expect(run!.status).toBe('suspended')
  })
})
