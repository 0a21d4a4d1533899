/** What a session of a coding CLI adds to the store: prompts and tools are there once, and each run has only what is new. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type Anthropic from '@anthropic-ai/sdk'
import { expect, test } from 'vitest'
import { finish, text } from '../../src/models/testing/scripted-model.ts'
import { agent, newFolder } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'

const words = (n: number, seed: string) => Array.from({ length: n / 8 }, (_, i) => `${seed}${i}`.padEnd(8)).join('')

/**
 * The pages in use, without the write-ahead log, and without the search index: its segments are merged in the background, so what it takes at a
 * moment depends on the speed of the machine.
 */
function sizeOf(dir: string): number {
  const db = new DatabaseSync(join(dir, 'millrace.db'), { readOnly: true })
  try {
    return Number(db.prepare("SELECT sum(pgsize) AS bytes FROM dbstat WHERE name NOT LIKE 'search%'").get()!['bytes'])
  } finally {
    db.close()
  }
}

test('Claude Code: each request of 48 KB adds at most 15 KB and twice the new text', { timeout: 120_000 }, async () => {
  const requests = 100
  const dir = newFolder()
  const server = await startServer({
    agents: { a: agent() },
    scripts: { m: createTold(() => [text('It is done, and here is what came of it.'), finish()]) },
    dir,
  })
  const tools = Array.from({ length: 12 }, (_, i) => ({
    name: `Tool${i}`,
    description: words(1800, `d${i}`),
    input_schema: { type: 'object', properties: { a: { type: 'string', description: words(800, `p${i}`) } } },
  }))
  const system = [
    { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.332.0b8; cc_entrypoint=cli;' },
    { type: 'text', text: words(5600, 's'), cache_control: { type: 'ephemeral' } },
  ]
  const reminder = { type: 'text', text: `<system-reminder>${words(600, 'r')}</system-reminder>` }
  const messages: object[] = [
    { role: 'user', content: [reminder, { type: 'text', text: 'Begin' }] },
    { role: 'system', content: words(9000, 'e') },
  ]
  let before = 0
  let fresh = 0
  for (let i = 0; i < requests; i++) {
    const body = { model: 'a', max_tokens: 1000, system, tools, messages }
    const headers = { 'x-claude-code-session-id': 'session-1' }
    const response = await server.post('/v1/messages', body, { headers })
    const { content } = (await response.json()) as Anthropic.Message
    const question = `Question ${i}: ${words(400, `q${i}`)}`
    messages.push({ role: 'assistant', content }, { role: 'user', content: [{ type: 'text', text: question }] })
    fresh += JSON.stringify(content).length + question.length
    // The first one brings the prompts.
    if (i === 0) before = sizeOf(dir)
  }
  const rows = await server.store.runs.list({ limit: 1000 })
  const added = sizeOf(dir) - before
  await server.close()
  expect(rows).toHaveLength(requests)
  expect(new Set(rows.map(({ threadId }) => threadId)).size).toBe(1)
  expect(added / requests).toBeLessThan(15 * 1024 + (2 * fresh) / requests)
})

test('Codex: each request of 40 KB adds at most 15 KB and twice the new text', { timeout: 120_000 }, async () => {
  const requests = 100
  const dir = newFolder()
  const server = await startServer({
    agents: { a: agent() },
    scripts: { m: createTold(() => [text('It is done, and here is what came of it.'), finish()]) },
    dir,
  })
  const tools = Array.from({ length: 9 }, (_, i) => ({
    type: 'function',
    name: `tool_${i}`,
    description: words(1500, `d${i}`),
    parameters: { type: 'object', properties: { a: { type: 'string', description: words(600, `p${i}`) } } },
  }))
  const message = (role: string, said: string) => {
    return {
      type: 'message',
      role,
      content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text: said }],
    }
  }
  const input: object[] = [
    message('developer', words(14_000, 'p')),
    message('developer', words(3000, 'r')),
    message('user', `<environment_context>${words(400, 'e')}</environment_context>`),
    message('user', 'Begin'),
  ]
  let before = 0
  let fresh = 0
  for (let i = 0; i < requests; i++) {
    const client_metadata = { turn_id: `turn-${i}`, thread_id: 'session-1' }
    const body = { model: 'a', store: false, include: ['reasoning.encrypted_content'], tools, input, client_metadata }
    const response = await server.post('/v1/responses', body, { headers: { 'thread-id': 'session-1' } })
    const { output } = (await response.json()) as { output: object[] }
    const question = `Question ${i}: ${words(400, `q${i}`)}`
    input.push(...output, message('user', question))
    fresh += JSON.stringify(output).length + question.length
    // The first one brings the prompts.
    if (i === 0) before = sizeOf(dir)
  }
  const rows = await server.store.runs.list({ limit: 1000 })
  const added = sizeOf(dir) - before
  await server.close()
  expect(rows).toHaveLength(requests)
  expect(new Set(rows.map(({ threadId }) => threadId)).size).toBe(1)
  expect(added / requests).toBeLessThan(15 * 1024 + (2 * fresh) / requests)
})
