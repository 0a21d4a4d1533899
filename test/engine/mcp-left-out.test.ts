/** Tools of an MCP server that cannot be used, in runs: the others work, and a step that names one of them fails with the reason. */
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only, type Engine } from '../support/engine.ts'

let engine: Engine | undefined
afterEach(async () => {
  await engine?.close()
  engine = undefined
})

const tools = [
  { name: 'fine', inputSchema: { type: 'object' } },
  { name: 'far', inputSchema: { type: 'object', properties: { a: { $ref: 'https://else.example/s.json' } } } },
]
const odd = {
  command: process.execPath,
  args: [fileURLToPath(new URL('../../src/tools/mcp/testing/odd-server.ts', import.meta.url))],
  env: { ODD: JSON.stringify([tools]) },
}
const reason = /The tool "far" of the MCP server "odd" is left out: its inputSchema refers to another document/u

test('a model gets the others, and the log says which one is left out', { timeout: 60_000 }, async () => {
  const model = createScriptedModel([
    [toolCall('c1', 'odd_fine', {}), finish('tool-calls')],
    [text('Done.'), finish()],
  ])
  engine = createEngine({ agents: { a: agent('tools: [{ mcp: odd }]') }, scripts: { m: model }, mcpServers: { odd } })
  const run = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
  expect(await run.result).toMatchObject({ outcome: 'completed', text: 'Done.' })
  expect(model.calls[0]!.options.tools?.map(({ name }) => name)).toEqual(['odd_fine'])
  const warnings = only(await entriesOf(engine.store, run.id), 'warning')
  expect(warnings.map(({ code, message }) => `${code} ${message}`)).toEqual([expect.stringMatching(reason)])
  expect(warnings[0]!.code).toBe('mcp-tool-left-out')
})

test.each([
  ['by its name', agent('tools: [odd_far]')],
  ['in a list of the server', agent('tools: [{ mcp: odd, tools: [far] }]')],
  ['alone', 'workflow: [{ id: answer, type: mcp-tool, config: { server: odd, tool: far, input: {} } }]'],
])('a step that names it %s fails with the reason', { timeout: 60_000 }, async (_, yaml) => {
  const scripts = { m: createScriptedModel([[text('never'), finish()]]) }
  engine = createEngine({ agents: { a: yaml }, scripts, mcpServers: { odd } })
  const run = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] })
  const { outcome, error } = await run.result
  expect([outcome, error?.code]).toEqual(['failed', 'bad-tools'])
  expect(error?.message).toMatch(reason)
  expect(scripts.m.calls).toEqual([])
})
