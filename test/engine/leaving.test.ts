/** Who reads a run may leave while it waits for the next entry, in process and over HTTP, and nothing of it stays. */
import { getEventListeners, once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { MillraceClient, type ClientRun, type Entry } from '../../src/client.ts'
import type { Store } from '../../src/part/log.ts'
import type { Run } from '../../src/runtime/runtime.ts'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

const done = { done: true, value: undefined }

/** A run that has said something and waits, and the number of readers that wait for more of the log. */
async function held() {
  const gate = latch()
  onTestFinished(gate.open)
  const signals = new Set<AbortSignal>()
  const wrapStore = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      read(run, options) {
        if (options?.signal !== undefined) signals.add(options.signal)
        return store.log.read(run, options)
      },
    },
  })
  const options: EngineOptions = {
    agents: { a: agent() },
    scripts: { m: createScriptedModel([[text('first'), gate, text('second'), finish()]]) },
    wrapStore,
  }
  server = await startServer(options)
  const { runtime, url } = server
  const client = new MillraceClient({ url })
  return {
    client,
    start: () => runtime.start('a', { messages: [{ role: 'user', content: 'Hi' }] }),
    run: () => client.run({ agent: 'a', messages: 'Hi' }),
    readers: () => [...signals].reduce((sum, signal) => sum + getEventListeners(signal, 'abort').length, 0),
    go: gate.open,
  }
}

type Held = Awaited<ReturnType<typeof held>>

/** Reads up to the last thing that there is, asks for the next and leaves. */
async function leaveWaiting<T>(entries: AsyncIterable<T>, isLast: (item: T) => boolean, begun: () => Promise<unknown>) {
  const iterator = entries[Symbol.asyncIterator]()
  for (;;) {
    const { done: ended, value } = await iterator.next()
    if (ended) throw new Error('it ended before it was left')
    if (isLast(value)) break
  }
  const waiting = [iterator.next(), iterator.next()]
  await begun()
  expect(await iterator.return!()).toEqual(done)
  expect(await Promise.all(waiting)).toEqual([done, done])
  expect(await iterator.next()).toEqual(done)
}

const isLast = (item: unknown) => typeof item === 'string' || (item as Entry).type === 'text-delta'

describe('leaving readers', () => {
  test.each<
    [string, (held: Held) => Promise<{ entries: AsyncIterable<unknown>; of: Pick<Run | ClientRun, 'result'> }>]
  >([
    [
      'run.parts',
      async ({ start }) => {
        const of = await start()
        return { entries: of.parts, of }
      },
    ],
    [
      'client.follow',
      async ({ start, client }) => {
        const of = await start()
        return { entries: client.follow(of.id), of }
      },
    ],
    [
      'client.follow with a signal besides',
      async ({ start, client }) => {
        const of = await start()
        return { entries: client.follow(of.id, 0, { signal: new AbortController().signal }), of }
      },
    ],
    [
      'a run of the client',
      async ({ run }) => {
        const of = run()
        return { entries: of, of }
      },
    ],
    [
      'the text of a run of the client',
      async ({ run }) => {
        const of = run()
        return { entries: of.textStream, of }
      },
    ],
  ])('%s is left at once while it waits: its cursor is released, and the run goes on', async (_, open) => {
    const all = await held()
    const { entries, of } = await open(all)
    const { readers, go } = all
    await leaveWaiting(entries, isLast, () => vi.waitFor(() => expect(readers()).toBe(1)))
    await vi.waitFor(() => expect(readers()).toBe(0))
    go()
    expect(await of.result).toMatchObject({ outcome: 'completed', text: 'firstsecond' })
  })

  test('a reader of run.parts that leaves takes nothing from another one', async () => {
    const { start, go } = await held()
    const run = await start()
    const entries: Entry[] = []
    const other = (async () => {
      for await (const entry of run.parts) entries.push(entry)
    })()
    await leaveWaiting(run.parts, isLast, async () => {})
    go()
    await other
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1))
    expect(entries.at(-1)?.type).toBe('run-end')
  })

  /** Takes requests and answers none. */
  async function startMute() {
    const sockets = new Set<Socket>()
    const mute = createServer((socket) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket)).on('error', () => undefined)
      socket.resume()
    })
    mute.listen(0, '127.0.0.1')
    await once(mute, 'listening')
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      mute.close()
    })
    return { url: `http://127.0.0.1:${(mute.address() as AddressInfo).port}`, connections: () => sockets.size }
  }

  test('client.follow is left while no answer has come: the connection is closed', async () => {
    const { url, connections } = await startMute()
    const iterator = new MillraceClient({ url }).follow('run_x')[Symbol.asyncIterator]()
    const waiting = iterator.next()
    await vi.waitFor(() => expect(connections()).toBe(1))
    expect(await iterator.return!()).toEqual(done)
    expect(await waiting).toEqual(done)
    await vi.waitFor(() => expect(connections()).toBe(0))
  })

  test('client.follow is left while it waits to try again: it tries no more', async () => {
    let asked = 0
    const refused = async () => (asked++, new Response('', { status: 503 }))
    const client = new MillraceClient({ url: 'http://x', fetch: refused })
    const iterator = client.follow('run_x')[Symbol.asyncIterator]()
    const waiting = iterator.next()
    await vi.waitFor(() => expect(asked).toBe(1))
    expect(await iterator.return!()).toEqual(done)
    expect(await waiting).toEqual(done)
    expect(asked).toBe(1)
  })

  test('a run of the client is left before it has begun', async () => {
    const { url, connections } = await startMute()
    const run = new MillraceClient({ url }).run({ agent: 'a', messages: 'Hi' })
    const iterators = [run[Symbol.asyncIterator](), run.textStream[Symbol.asyncIterator]()]
    const waiting = iterators.map((iterator) => iterator.next())
    await vi.waitFor(() => expect(connections()).toBe(1))
    for (const iterator of iterators) expect(await iterator.return!()).toEqual(done)
    expect(await Promise.all(waiting)).toEqual([done, done])
  })
})
