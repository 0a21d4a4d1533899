/** A server that dies in the middle of a response: the next one goes on, and the client reads the rest from the number that it has. */
import { afterEach, describe, expect, test } from 'vitest'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Entry } from '../../src/part/entry.ts'
import { responsesWire } from '../../src/wire/responses/responses.ts'
import { agent, newFolder, until } from '../support/engine.ts'
import { createTold, plant, readAll } from '../support/going-on.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { placesOf } from '../support/thorough.ts'
import * as z from 'zod'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

const path = '/v1/responses'
const multiply = { description: 'Multiplies.', parameters: z.object({}), idempotent: true, execute: () => 84 }
const yaml = agent('tools: [multiply]', 'recover: true')
const model = () =>
  createTold((prompt) =>
    prompt.at(-1)!.role === 'tool'
      ? [text('It ', 'is ', '84.'), finish()]
      : [text('Let me ', 'see.'), toolCall('c1', 'multiply'), finish('tool-calls')],
  )
const start = (dir = newFolder()) =>
  startServer({ agents: { a: yaml }, tools: { multiply }, scripts: { m: model() }, dir })

function framesOf(entries: readonly Entry[]): string {
  const encoder = responsesWire.createEncoder({}, { model: 'a' })
  return entries.map((entry) => encoder.encode(entry)).join('')
}

const lastNumber = (body: string) => Number([...body.matchAll(/"sequence_number":(\d+)/gu)].at(-1)?.[1])

describe('a response over a crash', () => {
  test('what came before it and the rest are the whole, wherever it happens', async () => {
    server = await start()
    const first = await server.post(path, { model: 'a', input: 'Go', stream: true })
    await first.text()
    const run = first.headers.get('x-millrace-run-id')!
    const entries = await readAll(server, run)
    await server.close()
    const end = entries.findIndex(({ type }) => type === 'answer-end')
    for (const k of placesOf(end - 1)) {
      const dir = newFolder()
      await plant(dir, entries.slice(0, k))
      server = await start(dir)
      await server.runtime.recover()
      await until(server.store, run, ({ type }) => type === 'run-end')
      const before = framesOf(entries.slice(0, k))
      const rest = await fetch(`${server.url}${path}/resp_${run}?stream=true&starting_after=${lastNumber(before)}`)
      const body = await rest.text()
      const log = await readAll(server, run)
      expect(before + body).toBe(framesOf(log))
      expect(body).toContain('event: response.completed')
      // Read from the start, an attempt that was lost is not there.
      const whole = await (await fetch(`${server.url}${path}/resp_${run}?stream=true`)).text()
      expect(whole).not.toContain('"status":"incomplete"')
      const response = (await (await fetch(`${server.url}${path}/resp_${run}`)).json()) as {
        output: { type: string }[]
      }
      expect(response.output.at(-1)).toMatchObject({ content: [{ text: 'It is 84.' }] })
      expect(response.output.filter(({ type }) => type === 'mcp_call').length).toBe(1)
      await server.close()
      server = undefined
    }
  })
})
