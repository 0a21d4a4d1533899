/** `GET /api/events`: what happens in all runs, as it happens, for monitors. */
import { get, type IncomingMessage } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { Change, Store } from '../../src/part/log.ts'
import { createScriptedModel, finish, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const says = (...script: ScriptStep[][]) =>
  createScriptedModel(script.length === 0 ? [[text('Hel', 'lo'), finish()]] : script)

interface Body {
  text: string
  more(): Promise<void>
}

async function start(options: Partial<EngineOptions> = {}, handler = {}) {
  const agents = { a: agent(), b: agent() }
  const server = await startServer(
    { agents, scripts: { m: says(...Array(9).fill([text('Hel', 'lo'), finish()])) }, ...options },
    handler,
  )
  onTestFinished(() => server.close())
  const watch = async (search = '', headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}/api/events${search}`, { headers })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    onTestFinished(() => reader.cancel())
    const body: Body = {
      text: '',
      async more() {
        const { done, value } = await reader.read()
        if (done) throw new Error(`it ended: ${body.text}`)
        body.text += value
      },
    }
    await body.more()
    return body
  }
  const run = async (id = 'a', threadId?: string) => {
    const started = await server.runtime.start(id, { messages }, threadId === undefined ? {} : { threadId })
    await started.result
    return started
  }
  return { ...server, watch, run }
}

test('a monitor that does not read costs what its socket holds, whatever 1000 runs say; then it gets all of it', async () => {
  let pulled = 0
  const count = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      async *changes(options) {
        for await (const changes of store.log.changes(options) as AsyncIterable<Change[]>) {
          pulled += changes.length
          yield changes
        }
      },
    },
  })
  const { url, store } = await start({ wrapStore: count })
  const response = await new Promise<IncomingMessage>((resolve) => get(`${url}/api/events?after=0`, resolve))
  onTestFinished(() => void response.destroy())
  const input = { text: 'x'.repeat(30_000) }
  const run = (id: string): Entry => {
    const start = { agent: 'a', pipeline: '', threadId: id, protocol: 'api', input }
    return { seq: 1, timestamp: 0, step: '', type: 'run-start', runId: id, ...start }
  }
  await Promise.all(Array.from({ length: 1000 }, (_, i) => store.log.append(`run_${i}`, 1, [run(`run_${i}`)])))
  // What is read without the client is read in a few turns, and of a store elsewhere in a few looks.
  for (let known = -1; pulled === 0 || known !== pulled;) {
    known = pulled
    for (let looks = 0; looks < 10; looks++) await store.log.position()
    for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
  }
  expect(pulled).toBeGreaterThan(10)
  expect(pulled).toBeLessThan(700)
  const runs = new Set<string>()
  let rest = ''
  for await (const bytes of response.setEncoding('utf8')) {
    const frames = (rest + (bytes as string)).split('\n\n')
    rest = frames.pop()!
    for (const frame of frames) {
      const [, run] = /^data: \{"run":"(\w+)"/mu.exec(frame) ?? []
      if (run !== undefined) runs.add(run)
    }
    if (runs.size === 1000) break
  }
  expect(pulled).toBe(1000)
})
