/** A hub with tabs that are functions, before a real server. */
import { onTestFinished } from 'vitest'
import type { Entry } from '../../../src/part/entry.ts'
import { agent, type EngineOptions } from '../../../test/support/engine.ts'
import { startServer, type TestServer } from '../../../test/support/server.ts'
import { createHub } from '../hub.ts'
import type { HubBatch } from '../messages.ts'
import { createTab, type Tab } from '../tab.ts'

export interface Following {
  entries: Entry[]
  gone: string[]
  leave(): void
  until(fits: (entry: Entry) => boolean): Promise<void>
}

/** A server that may be replaced, a hub, and what the hub asked of the server. */
export async function open(options: Partial<EngineOptions>, handler = {}) {
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
    const batches: HubBatch[] = []
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
