/** MCP servers in an agent, as its file names them: the reference server over stdio and over HTTP. */
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createJournal, everything, isAlive, startEverything } from '../../src/tools/mcp/testing/everything.ts'
import { progressWords } from '../../src/fold/progress-words.ts'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only, until, type Engine } from '../support/engine.ts'

let engine: Engine | undefined
afterEach(async () => {
  await engine?.close()
  engine = undefined
})

const messages = [{ role: 'user', content: 'Hi' }]

async function servers() {
  const journal = createJournal()
  onTestFinished(() => journal.remove())
  const http = await startEverything()
  onTestFinished(() => http.kill())
  return { journal, mcpServers: { near: everything(journal), far: { url: http.url } } }
}

describe('MCP tools in a run', () => {
  test('a model is offered the tools that its step names, calls them on both servers, and is told the results', async () => {
    const { journal, mcpServers } = await servers()
    const model = createScriptedModel([
      [
        toolCall('c1', 'near_get-sum', { a: 1, b: 2 }),
        toolCall('c2', 'far_echo', { message: 'hello' }),
        toolCall('c3', 'near_echo', { message: 'not offered' }),
        toolCall('c4', 'near_get-sum', { a: 'one' }),
        finish('tool-calls'),
      ],
      [text('Done.'), finish()],
    ])
    engine = createEngine({
      agents: { a: agent('tools: [{ mcp: near, tools: [get-sum] }, far_echo]') },
      scripts: { m: model },
      mcpServers,
    })
    const run = await engine.runtime.start('a', { messages })
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
    expect(model.calls[0]!.options.tools?.map(({ name }) => name)).toEqual(['near_get-sum', 'far_echo'])
    const results = only(await entriesOf(engine.store, run.id), 'tool-result')
    expect(Object.fromEntries(results.map(({ toolCallId, result }) => [toolCallId, result]))).toEqual({
      c1: 'The sum of 1 and 2 is 3.',
      c2: 'Echo: hello',
      c3: expect.stringContaining('no tool "near_echo"'),
      c4: expect.stringContaining('do not match'),
    })
    await engine.close()
    engine = undefined
    expect(journal.pids().filter(isAlive)).toEqual([])
  })

  test('an mcp-tool step calls one with values of the run; a stop ends one that is slow', async () => {
    const { mcpServers } = await servers()
    const slow = `{ id: slow, type: mcp-tool, config: { server: far, tool: trigger-long-running-operation, input: { duration: 60, steps: 1 } } }`
    engine = createEngine({
      agents: {
        a: `
workflow:
  - { id: sum, type: mcp-tool, result: sum, config: { server: near, tool: get-sum, input: { a: $input.a, b: 2 } } }
  - { id: say, type: mcp-tool, config: { server: far, tool: echo, input: { message: "so: $sum" } } }`,
        b: `workflow: [${slow}]`,
        told: `workflow: [${slow.replace('60, steps: 1', '1, steps: 2').replace('far', 'near')}]`,
      },
      mcpServers,
    })
    const told = await engine.runtime.start('told', {})
    const { outcome } = await told.result
    const entries = await entriesOf(engine.store, told.id)
    expect([outcome, entries.flatMap((entry) => progressWords(entry) ?? [])]).toEqual([
      'completed',
      expect.arrayContaining(['1 of 2']),
    ])
    const done = await (await engine.runtime.start('a', { a: 40 })).result
    expect([done.outcome, done.output]).toEqual(['completed', 'Echo: so: The sum of 40 and 2 is 42.'])
    const run = await engine.runtime.start('b', {})
    await until(engine.store, run.id, ({ type, step }) => type === 'step-start' && step === 'main/slow')
    await run.stop()
    expect(await run.result).toMatchObject({ outcome: 'aborted' })
  })
})
