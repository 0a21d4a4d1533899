/** Servers with hundreds of tools: a model finds those that it needs, and they are offered from its next call on. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { startTaskServer, type TaskServer } from '../../src/tools/mcp/testing/task-server.ts'
import { catalogue, worded } from '../../src/tools/search/testing/catalogue.ts'
import { agent, createEngine, entriesOf, newFolder, only, until, type EngineOptions } from '../support/engine.ts'
import { createTold, plant, readAll, resultsIn, type Told } from '../support/going-on.ts'

let server: TaskServer
beforeEach(async () => {
  server = await startTaskServer({}, catalogue.slice(0, 300))
})
afterEach(() => server.close())

const input = { messages: [{ role: 'user', content: 'Hi' }] }

/** Searches, calls what it was told of, and says so. */
const searching = (query = 'bill a customer', tool = 's_create_invoice') =>
  createTold((prompt) => {
    const results = resultsIn(prompt)
    if (!results.has('c1')) return [...toolCall('c1', 'find_tools', { query }), finish('tool-calls')]
    if (!results.has('c2')) return [...toolCall('c2', tool, { name: 'n' }), finish('tool-calls')]
    return [text('Done.'), finish()]
  })

const options = (m: Told, tools = 'tools: [{ mcp: s }]', more: object = {}): EngineOptions => ({
  agents: { a: agent(tools, 'recover: true') },
  scripts: { m },
  mcpServers: { s: { url: server.url, ...more } },
})

function open(given: EngineOptions) {
  const engine = createEngine(given)
  onTestFinished(() => engine.close())
  return engine
}

const offered = ({ calls }: Told) => calls.map(({ tools = [] }) => tools.map(({ name }) => name))

describe('300 tools', () => {
  test('the first prompt has one of them; what is found is appended to the next, and runs', async () => {
    const m = searching()
    const engine = open(options(m))
    const run = await engine.runtime.start('a', input)
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    const [first, second, third] = offered(m)
    expect(first).toEqual(['find_tools'])
    expect(second![0]).toBe('find_tools')
    expect(second).toContain('s_create_invoice')
    expect(second!.length).toBeLessThanOrEqual(9)
    expect(third).toEqual(second)
    const results = only(await entriesOf(engine.store, run.id), 'tool-result')
    expect(results[0]!.result).toMatchObject({
      tools: second!.slice(1).map((name) => expect.objectContaining({ name })),
    })
    expect(results[1]!.result).toBe('ran create_invoice')
    const all = JSON.stringify(catalogue.slice(0, 300)).length
    expect(JSON.stringify(m.calls[0]!.tools).length).toBeLessThanOrEqual(all * 0.05)
  })

  test('a second search appends: what was found before stays where it is', async () => {
    const m = createTold((prompt) => {
      const results = resultsIn(prompt)
      if (!results.has('c1')) return [...toolCall('c1', 'find_tools', { query: 'coupon' }), finish('tool-calls')]
      if (!results.has('c2'))
        return [...toolCall('c2', 'find_tools', { query: 'delete coupon invoice' }), finish('tool-calls')]
      return [text('Done.'), finish()]
    })
    const engine = open(options(m))
    await (
      await engine.runtime.start('a', input)
    ).result
    const [, second, third] = offered(m)
    expect(third!.slice(0, second!.length)).toEqual(second)
    expect(third!.length).toBeGreaterThan(second!.length)
    expect(new Set(third).size).toBe(third!.length)
  })

  test('20 worded tasks find their tool among the first five', async () => {
    await server.close()
    server = await startTaskServer({}, catalogue)
    const missed: string[] = []
    for (const [task, tool] of worded) {
      const m = searching(task, `s_${tool}`)
      const engine = createEngine(options(m))
      await (
        await engine.runtime.start('a', input)
      ).result
      if (!offered(m)[1]!.slice(1, 6).includes(`s_${tool}`)) missed.push(task)
      await engine.close()
    }
    expect(missed).toEqual([])
  })

  test('approval, and the list of tools in the file, hold for what is found', async () => {
    const m = searching()
    const engine = open(
      options(m, 'tools: [{ mcp: s, tools: [create_invoice, get_invoice], approval: true, defer: true }]'),
    )
    const run = await engine.runtime.start('a', input)
    const request = await until(engine.store, run.id, ({ type }) => type === 'request')
    expect(request).toMatchObject({ kind: 'approval', toolName: 's_create_invoice' })
    expect(offered(m)[1]!.toSorted()).toEqual(['find_tools', 's_create_invoice', 's_get_invoice'])
  })

  test('the process ends behind each entry: the same tools are offered as without it', async () => {
    const m = searching()
    const first = open(options(m))
    const run = await first.runtime.start('a', input)
    await run.result
    const whole = offered(m)
    const entries = await readAll(first, run.id)
    for (let k = 2; k < entries.length; k++) {
      const dir = newFolder()
      await plant(dir, entries.slice(0, k))
      const again = searching()
      const engine = createEngine({ ...options(again), dir })
      await engine.runtime.recover()
      await until(engine.store, run.id, ({ type }) => type === 'run-end')
      const last = offered(again).at(-1)
      if (last !== undefined) expect(last, `killed behind entry ${k}`).toEqual(whole.at(-1))
      await engine.close()
    }
  })

  test('a fork behind a search goes on with what was found, whatever its server lists by then', async () => {
    const m = searching()
    const engine = open(options(m))
    const run = await engine.runtime.start('a', input)
    await run.result
    const entries = await readAll(engine, run.id)
    const at = entries.find((entry) => entry.type === 'tool-result')!.seq
    const before = m.calls.length
    const fork = await engine.runtime.fork(run.id, { at })
    await fork.result
    expect(offered(m).slice(before)).toEqual(offered(m).slice(1, 3))
  })

  test('one that the model guesses without a search works; one that does not exist is told with few names', async () => {
    const m = createTold((prompt) =>
      resultsIn(prompt).size === 0
        ? [...toolCall('c1', 's_none', {}), ...toolCall('c2', 's_get_invoice', { id: '1' }), finish('tool-calls')]
        : [text('Done.'), finish()],
    )
    const engine = open(options(m))
    const run = await engine.runtime.start('a', input)
    await run.result
    const results = only(await entriesOf(engine.store, run.id), 'tool-result').map(({ result }) => result)
    expect(results).toEqual(['There is no tool "s_none". Known tools: find_tools.', 'ran get_invoice'])
  })
})

describe('without a search', () => {
  const first = async (tools: string, more: object = {}) => {
    const m = createTold(() => [text('Done.'), finish()])
    const engine = open(options(m, tools, more))
    const run = await engine.runtime.start('a', input)
    expect((await run.result).outcome).toBe('completed')
    return offered(m)[0]!
  }
  const some = (n: number) =>
    `[${catalogue
      .slice(0, n)
      .map(({ name }) => name)
      .join(', ')}]`

  test('64 tools are offered as they are, 65 are not', async () => {
    expect(await first(`tools: [{ mcp: s, tools: ${some(64)} }]`)).toHaveLength(64)
    expect(await first(`tools: [{ mcp: s, tools: ${some(65)} }]`)).toEqual(['find_tools'])
  })

  test('search: true is for few tools, too; defer and search: false are the last word', async () => {
    const few = `{ mcp: s, tools: ${some(3)}`
    expect(await first(`tools: [${few} }]`, { search: true })).toEqual(['find_tools'])
    expect(await first(`tools: [${few}, defer: false }]`, { search: true })).toHaveLength(3)
    expect(await first('tools: [{ mcp: s }]', { search: false })).toHaveLength(300)
    expect(await first('tools: [{ mcp: s, defer: false }]')).toHaveLength(300)
    expect(await first('tools: [{ mcp: s }, s_get_invoice]')).toEqual(['s_get_invoice', 'find_tools'])
    expect(await first('tools: [calculator, { name: s_get_invoice, defer: true }]')).toEqual([
      'calculator',
      'find_tools',
    ])
  })

  test('more than 60,000 characters of few tools', async () => {
    await server.close()
    const large = Array.from({ length: 3 }, (_, i) => ({
      name: `t${i}`,
      inputSchema: { type: 'object', properties: { a: { type: 'string', description: 'x'.repeat(20_100) } } },
    }))
    server = await startTaskServer({}, large)
    expect(await first('tools: [{ mcp: s }]')).toEqual(['find_tools'])
    expect(await first('tools: [{ mcp: s, tools: [t0, t1] }]')).toHaveLength(2)
  })
})
