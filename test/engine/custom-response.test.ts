/** A custom step that returns what it fetched: each end of the connection is one end of the run, and none stays open. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { PrimitiveHandler } from '../../src/engine/registry.ts'
import { createEngine, entriesOf, only, type Engine } from '../support/engine.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

async function start(mine: PrimitiveHandler) {
  engine = createEngine({ agents: { a: 'workflow: [{ id: mine, type: mine }]' }, steps: { mine } })
  return engine.runtime.start('a', {})
}

/** How the run ended; it has ended once, by the grammar. */
async function run(mine: PrimitiveHandler) {
  const started = await start(mine)
  const result = await started.result
  return { ...result, entries: await entriesOf(engine!.store, started.id) }
}

/** A server whose answers a test gives; `left`: our side has closed the connection. */
async function serve(answer: (response: ServerResponse) => void) {
  const left = Promise.withResolvers<void>()
  const server = createServer((_, response) => {
    response.on('close', () => {
      if (!response.writableFinished) left.resolve()
    })
    answer(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, left: left.promise }
}

describe('custom responses', () => {
  test.each([
    ['chunked', {}],
    ['of a known length', { 'content-length': '100' }],
  ])('a Response that breaks midway (%s) is one failed end behind what was said', async (_, headers) => {
    let cut: (() => void) | undefined
    const { url } = await serve((response) => {
      response.writeHead(200, headers).write('Half of it')
      cut = () => void response.destroy()
    })
    const started = await start(() => fetch(url))
    for await (const { type } of started.parts) if (type === 'text-delta') cut!()
    const { outcome, text, error } = await started.result
    expect([outcome, text, error?.message]).toEqual(['failed', 'Half of it', 'Step "mine" (mine) failed.'])
    const entries = await entriesOf(engine!.store, started.id)
    expect(only(entries, 'run-end')).toHaveLength(1)
    expect(only(entries, 'answer-end')).toEqual([])
  })

  test.each(['AbortError', 'TimeoutError'])(
    'a Response whose request the step itself gives up (%s) is a failure, neither a stop nor a timeout of the run',
    async (name) => {
      const { url, left } = await serve((response) => void response.writeHead(200).write('Half of it'))
      const own = new AbortController()
      const started = await start(() => fetch(url, { signal: own.signal }))
      for await (const { type } of started.parts)
        if (type === 'text-delta') own.abort(new DOMException('given up', name))
      expect(await started.result).toMatchObject({
        outcome: 'failed',
        text: 'Half of it',
        error: { code: 'step-failed' },
      })
      await entriesOf(engine!.store, started.id)
      await left
    },
  )

  test.each([true, false])(
    'a stop closes the connection of a Response (the step hands its signal on: %s)',
    async (hands) => {
      const { url, left } = await serve((response) => void response.writeHead(200).write('Half of it'))
      const started = await start((_, { signal }) => fetch(url, hands ? { signal } : {}))
      for await (const entry of started.parts) if (entry.type === 'text-delta') await started.stop('enough')
      expect(await started.result).toMatchObject({
        outcome: 'aborted',
        text: 'Half of it',
        error: { message: 'enough' },
      })
      expect(only(await entriesOf(engine!.store, started.id), 'run-end')).toHaveLength(1)
      await left
    },
  )

  test('a Response with an error’s status is a failure that says so, and its connection is closed', async () => {
    const { url, left } = await serve((response) => void response.writeHead(503).write('Not now'))
    const { outcome, text, error } = await run(() => fetch(url))
    expect([outcome, text, error?.code]).toEqual(['failed', '', 'bad-response'])
    expect(error?.message).toContain('503')
    await left
  })

  test('a Response with JSON is its text as it stands; one without a body is an empty answer', async () => {
    const body = JSON.stringify({ answer: 42, text: 'ü€' }, undefined, 2)
    const { url } = await serve((response) =>
      response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end(body),
    )
    expect(await run(() => fetch(url))).toMatchObject({ outcome: 'completed', text: body })
    await engine!.close()
    const empty = await serve((response) => response.writeHead(204).end())
    const { outcome, text, entries } = await run(() => fetch(empty.url))
    expect([outcome, text]).toEqual(['completed', ''])
    expect(only(entries, 'answer-end')).toHaveLength(1)
  })

  test.each<[string, (response: Response) => unknown, string, string]>([
    ['was read already', (response) => response.text(), 'bad-response', 'clone'],
    ['somebody reads', (response) => void response.body!.getReader(), 'bad-source', 'locked'],
  ])('a Response that %s is no answer, and it is said why', async (_, spoil, code, word) => {
    const { outcome, error } = await run(async () => {
      const response = new Response('read')
      await spoil(response)
      return response
    })
    expect([outcome, error?.code]).toEqual(['failed', code])
    expect(error?.message).toContain(word)
  })
})
