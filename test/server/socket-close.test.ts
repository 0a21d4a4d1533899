/** A server with Socket.IO clients that shuts down, and one whose agents change. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { createScriptedModel as createPlayer } from '../../src/models/scripted.ts'
import { latch, text } from '../../src/models/testing/scripted-model.ts'
import { folder } from '../support/cli.ts'
import { connectSocket, judged, textOf, transports } from '../support/socket.ts'

const yaml = 'workflow: [{ id: answer, type: llm, config: { model: "script:m", stream: true } }]\n'

/** The config file reaches the model of this test. */
async function served(model: unknown, server: object) {
  const key = `model-${Math.random()}`
  Object.assign(globalThis, { [key]: model })
  const config = `export default {
    record: { data: 'none' },
    server: ${JSON.stringify({ port: 0, ...server })},
    models: { providers: { script: () => globalThis[${JSON.stringify(key)}] } },
  }`
  const dir = folder({ 'a.yaml': yaml, 'millrace.config.mjs': config })
  const running = await serve({ dir, env: {} })
  onTestFinished(() => running.close())
  return { ...running, dir }
}

describe('Socket.IO: close', () => {
  test.each(transports)(
    '%s: a run ends in the time it is given, is told so, and then the connection closes',
    async (transport) => {
      const gate = latch()
      const model = createPlayer(() => [text('Hel'), gate, text('lo')])
      const { url, close } = await served(model, { graceMs: 30_000 })
      const client = await connectSocket(url, transport)
      await client.run({})
      await client.until(({ event }) => event.type === 'TEXT_MESSAGE_CONTENT')
      const gone = new Promise((resolve) => client.socket.once('disconnect', resolve))
      const closed = close()
      // A client that polls gets the rest in several answers.
      expect(await client.send('run_agent', {})).toMatchObject({ ok: false })
      gate.open()
      const events = await client.ended('r')
      await judged(events)
      expect(textOf(events)).toBe('Hello')
      expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
      await gone
      await closed
    },
  )

  test.each(transports)('%s: a run that takes longer is interrupted, and told so', async (transport) => {
    const gate = latch()
    const { url, close } = await served(
      createPlayer(() => [text('Hel'), gate]),
      { graceMs: 0 },
    )
    const client = await connectSocket(url, transport)
    await client.run({})
    await client.until(({ event }) => event.type === 'TEXT_MESSAGE_CONTENT')
    await close()
    const events = await client.ended('r')
    await judged(events)
    expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'interrupted' })
    gate.open()
  })

  test('clients that do nothing do not hold the server up', async () => {
    const { url, close } = await served(
      createPlayer(() => []),
      {},
    )
    for (const transport of transports) await connectSocket(url, transport)
    await close()
  })

  test('the agents are told when a client connects, and again when they change', async () => {
    const { url, dir } = await served(
      createPlayer(() => []),
      {},
    )
    const client = await connectSocket(url)
    expect(client.agents).toEqual([{ agents: [{ id: 'a', name: 'a' }], defaultAgent: 'a' }])
    writeFileSync(join(dir, 'b.yaml'), `metadata: { name: The B, description: Says b }\n${yaml}`)
    await expect
      .poll(() => client.agents.at(-1))
      .toEqual({
        agents: [
          { id: 'a', name: 'a' },
          { id: 'b', name: 'The B', description: 'Says b' },
        ],
      })
  })
})
