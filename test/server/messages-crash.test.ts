/** A server that dies in the middle of a message: the next one goes on, and Claude Code, which asks again with what it has, gets the whole answer. */
import type Anthropic from '@anthropic-ai/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, newFolder, until } from '../support/engine.ts'
import { createTold, plant, readAll, resultsIn } from '../support/going-on.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { placesOf } from '../support/thorough.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

const path = '/v1/messages'
const headers = { 'x-claude-code-session-id': 'session-1' }
const multiply = { description: 'Multiplies.', parameters: z.object({}), idempotent: true, execute: () => 84 }
const model = () =>
  createTold((prompt) =>
    resultsIn(prompt).size > 0
      ? [text('It ', 'is ', '84.'), finish()]
      : [text('Let me ', 'see.'), toolCall('c1', 'multiply'), finish('tool-calls')],
  )
const start = (dir: string, more: string) =>
  startServer({ agents: { a: agent('tools: [multiply]', more) }, tools: { multiply }, scripts: { m: model() }, dir })
const cut = { type: 'text', text: '<system-reminder>\nYour response above was cut off mid-stream.\n</system-reminder>' }
const asked = [{ role: 'user', content: 'Go' }]

describe('a message over a crash', () => {
  test.each(['recover: true', ''])('%s: one answer, wherever it happens', async (more) => {
    server = await start(newFolder(), more)
    const body = { model: 'a', max_tokens: 100, messages: asked }
    const first = await server.post(path, body, { headers })
    const run = ((await first.json()) as Anthropic.Message).id.slice(4)
    const entries = await readAll(server, run)
    await server.close()
    // A client that has the whole text does not ask again.
    const end = entries.findLastIndex(({ type }) => type === 'text-delta')
    for (const k of placesOf(end - 1)) {
      const dir = newFolder()
      await plant(dir, entries.slice(0, k))
      server = await start(dir, more)
      await server.runtime.recover()
      await until(server.store, run, ({ type }) => type === 'run-end')
      // What the client has of it.
      const said = entries.slice(0, k).flatMap((entry) => (entry.type === 'text-delta' ? [entry.delta] : []))
      const messages =
        said.length === 0
          ? asked
          : [
              ...asked,
              { role: 'assistant', content: [{ type: 'text', text: said.join('') }] },
              { role: 'user', content: [cut] },
            ]
      const again = await server.post(path, { ...body, messages, stream: true }, { headers })
      const whole = await again.text()
      expect(whole).toContain('event: message_stop')
      expect(whole).toContain('84.')
      const joins = again.headers.get('x-millrace-run-id') === run
      expect(joins).toBe(more === 'recover: true')
      // An attempt that was lost is not there.
      if (joins) expect(whole.match(/"type":"mcp_tool_use"/gu)).toHaveLength(1)
      expect(await server.store.runs.list()).toHaveLength(joins ? 1 : 2)
      await server.close()
      server = undefined
    }
  })
})
