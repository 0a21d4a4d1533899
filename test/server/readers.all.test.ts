/** Readers that come and go leave nothing behind. */
import { createServer } from 'node:http'
import { type AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Store } from '../../src/part/log.ts'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import type { Runtime } from '../../src/runtime/runtime.ts'
import { createHandler } from '../../src/server/handler.ts'
import { createNodeListener } from '../../src/server/http/node-listener.ts'
import { agent, createEngine } from '../support/engine.ts'
import { requests, storm } from './resetting-clients.ts'

describe('readers of a run', () => {
  test('readers that are reset leave no cursor in the log and are no longer present', async () => {
    const gate = latch()
    const cursors = new Set<object>()
    let present = 0
    const counted = (store: Store): Store => ({
      ...store,
      log: {
        ...store.log,
        read(run, options = {}) {
          const { signal } = options
          const entries = store.log.read(run, options)
          if (signal === undefined) return entries
          return {
            [Symbol.asyncIterator]() {
              const inner = entries[Symbol.asyncIterator]()
              cursors.add(inner)
              const gone = () => void cursors.delete(inner)
              signal.addEventListener('abort', gone)
              return {
                next: async () => {
                  const result = await inner.next()
                  if (result.done) gone()
                  return result
                },
                return: async () => {
                  gone()
                  return (await inner.return?.()) ?? { done: true, value: undefined }
                },
              }
            },
          }
        },
      },
    })
    const goes = createScriptedModel(Array.from({ length: 100 }, () => [text('a'), latch(), finish()]))
    const stays = createScriptedModel([[text('a'), gate, text('b'), finish()]])
    const engine = createEngine({
      agents: {
        stays: agent('', 'onDisconnect: detach'),
        goes: agent('', 'onDisconnect: cancel').replace('script:m', 'script:g'),
      },
      scripts: { m: stays, g: goes },
      wrapStore: counted,
    })
    onTestFinished(() => engine.close())
    const runtime: Runtime = {
      ...engine.runtime,
      attach(run, policy) {
        present++
        let left = false
        const release = engine.runtime.attach(run, policy)
        return (how) => {
          if (!left) present--
          left = true
          release(how)
        }
      },
    }
    const reported: unknown[] = []
    const onError = (error: unknown) => void reported.push(error)
    const server = createServer(createNodeListener(createHandler({ runtime, authorize: () => true, onError }), onError))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close().closeAllConnections())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

    const run = await engine.runtime.start('stays', { messages: [{ role: 'user', content: 'Hi' }] }, { threadId: 't' })
    await gate.reached
    await storm(url, requests(run.id, 't'), 100)
    await vi.waitFor(() => expect([engine.runtime.active, cursors.size, present]).toEqual([1, 0, 0]))
    expect(goes.calls.length).toBeGreaterThan(0)
    expect(goes.calls.every(({ aborted }) => aborted)).toBe(true)
    expect(reported).toEqual([])
    gate.open()
    expect(await run.result).toMatchObject({ outcome: 'completed', text: 'ab' })
  })
})
