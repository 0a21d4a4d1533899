/** The hub with tabs that are functions, and a real server: one connection, and each tab gets exactly what it follows. */
import { expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { agent, type EngineOptions } from '../../test/support/engine.ts'
import { startServer, type TestServer } from '../../test/support/server.ts'
import { createHub } from './hub.ts'
import type { Batch } from './messages.ts'
import { createTab, type Tab } from './tab.ts'

interface Following {
  entries: Entry[]
  gone: string[]
  leave(): void
  until(fits: (entry: Entry) => boolean): Promise<void>
}

/** A server that may be replaced, a hub, and what the hub asked of the server. */
async function open(options: Partial<EngineOptions>, handler = {}) {
  const launch = (more: Partial<EngineOptions> = {}) =>
    startServer({ agents: { a: agent() }, ...options, ...more }, handler)
  const state = {
    server: (await launch({ keep: true })) as TestServer | undefined,
    streams: 0,
    most: 0,
    urls: [] as string[],
  }
  const first = state.server!
  const hub = createHub({
    async fetch(input, init) {
      const path = input as string
      state.urls.push(path)
      if (state.server === undefined) throw new TypeError('fetch failed')
      const response = await fetch(state.server.url + path, init)
      if (path.startsWith('/api/live') && response.ok) {
        state.most = Math.max(state.most, ++state.streams)
        const closed = () => void state.streams--
        const signal = init!.signal!
        signal.addEventListener('abort', closed, { once: true })
      }
      return response
    },
  })
  onTestFinished(async () => {
    for (const tab of tabs) tab.detach()
    await state.server?.close()
  })
  const tabs: Tab[] = []

  function openTab(options: { acks?: () => Promise<unknown>; key?: string } = {}) {
    const tab = createTab()
    const batches: Batch[] = []
    if (options.key !== undefined) tab.setKey(options.key)
    const send = hub.connect((batch) => {
      batches.push(batch)
      const copy = structuredClone(batch)
      void Promise.resolve(options.acks?.()).then(() => setTimeout(() => tab.receive(copy)))
    })
    tab.attach(send)
    tabs.push(tab)
    return { ...tab, tab, batches, send, state: () => tab.connection.state }
  }

  function follow(tab: Tab, run: string, after = 0): Following {
    const entries: Entry[] = []
    const gone: string[] = []
    const waiting = new Set<() => void>()
    const told = () => {
      for (const wake of waiting) wake()
    }
    const leave = tab.follow(run, after, {
      onEntries(more) {
        entries.push(...more)
        told()
      },
      onGone(reason) {
        gone.push(reason)
        told()
      },
    })
    return {
      entries,
      gone,
      leave,
      async until(fits) {
        while (!entries.some(fits)) {
          const news = Promise.withResolvers<void>()
          waiting.add(news.resolve)
          await news.promise
          waiting.delete(news.resolve)
        }
      },
    }
  }
  return { hub, state, first, launch, openTab, follow }
}

test('a slow tab keeps nobody waiting, costs a bounded amount, and gets all of it', async () => {
  const { first, openTab, follow } = await open({})
  const gate = Promise.withResolvers<void>()
  const [slow, fast] = [openTab({ acks: () => gate.promise }), openTab()]
  const entry = {
    seq: 1,
    timestamp: 0,
    step: '',
    runId: 'r',
    agent: 'a',
    pipeline: '',
    threadId: 't',
    protocol: 'api',
    input: {},
  }
  await first.store.log.append('r', 1, [{ ...entry, type: 'run-start' }])
  const both = [follow(slow.tab, 'r'), follow(fast.tab, 'r')]
  await both[1]!.until(() => true)
  const data = 'x'.repeat(200_000)
  for (let seq = 2; seq <= 101; seq++) {
    await first.store.log.append('r', 1, [{ seq, timestamp: 0, step: '', type: 'data', name: 'd', data }])
  }
  await both[1]!.until(({ seq }) => seq === 101)
  expect(both[0]!.entries).toEqual([])
  gate.resolve()
  await both[0]!.until(({ seq }) => seq === 101)
  for (const { entries } of both)
    expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: 101 }, (_, i) => i + 1))
  const sizes = slow.batches.map(({ entries }) => JSON.stringify(entries).length)
  expect(Math.max(...sizes)).toBeLessThan(16 * 1024 * 1024)
})
