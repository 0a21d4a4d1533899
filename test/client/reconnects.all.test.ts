/** Connections that break anywhere, a thousand times: what the client holds is what the server has. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { MillraceClient, type Entry } from '../../src/client.ts'
import { createRunFold } from '../../src/fold/run-fold.ts'
import { createScriptedModel, finish, latch, text, type Latch } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { randomOf } from '../support/random.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { cuttingProxy, type CuttingProxy } from './cutting-proxy.ts'
import { overHttp, overSocket, type Connect } from './transports.ts'
import { often } from '../support/thorough.ts'

/** Another seed breaks connections elsewhere. */
const seed = Number(process.env['MILLRACE_TEST_SEED'] ?? 7)
const runCount = 8
const reconnects = 1000
const socketCuts = often(60, 3)
const words = (from: string) => Array.from({ length: 60 }, (_, i) => `${from}${i} 👋 `)

let server: TestServer
let direct: MillraceClient
/** Half of each run is told live: once half of the connections have broken. Of each test. */
const gates = [latch(), latch(), latch(), latch()] as const

beforeAll(async () => {
  const script = (gate: Latch) => [text(...words('a')), gate, text(...words('b')), finish()]
  const models = gates.map((gate) => createScriptedModel(Array.from({ length: runCount }, () => script(gate))))
  server = await startServer({
    agents: Object.fromEntries(models.map((_, i) => [`a${i}`, agent().replace('script:m', `script:m${i}`)])),
    scripts: Object.fromEntries(models.map((model, i) => [`m${i}`, model])),
  })
  direct = new MillraceClient({ url: server.url })
})
afterAll(() => server.close())

interface Trial {
  /** Which of the gates, and which agent. */
  nth: 0 | 1 | 3
  connect: Connect
  cuts: number
  /** Each has a client of its own, which reads all runs. */
  pages: number
  most: { down: number; up: number }
}

async function readThroughCuts({ nth, connect, cuts, pages, most }: Trial): Promise<CuttingProxy> {
  const random = randomOf(seed)
  let begun = 0
  const proxy = await cuttingProxy(server.url, () => {
    if (++begun > cuts) return undefined
    if (begun > cuts / 2) gates[nth].open()
    const up = random() < 0.2 ? Math.floor(random() * most.up) : Infinity
    return { down: Math.floor(random() * most.down), up }
  })
  onTestFinished(() => proxy.close())
  const before = (await server.store.runs.list({ limit: 1000 })).length
  const runs = Array.from({ length: runCount }, () => direct.run({ agent: `a${nth}`, messages: 'Hi' }))
  const ids = await Promise.all(runs.map(({ id }) => id))
  let atGate = 0

  async function read(client: MillraceClient, id: string) {
    const entries: Entry[] = []
    const fold = createRunFold()
    let deltas = 0
    for await (const entry of client.follow(id, 0, { retries: 100 })) {
      entries.push(entry)
      fold.apply(entry)
      // Whoever waits at the gate is not cut.
      if (entry.type === 'text-delta' && ++deltas === words('a').length && ++atGate === pages * runCount)
        gates[nth].open()
    }
    return { id, entries, view: fold.view() }
  }
  const clients = Array.from({ length: pages }, () => connect(proxy.url))
  const held = await Promise.all(clients.flatMap((client) => ids.map((id) => read(client, id))))
  const shownBy = new Map(await Promise.all(ids.map(async (id) => [id, await direct.show(id)] as const)))
  for (const { id, entries, view } of held) {
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1))
    const { runId, ...shown } = view
    expect(JSON.parse(JSON.stringify({ id: runId, ...shown }))).toEqual(shownBy.get(id))
    expect(shown.text).toBe([...words('a'), ...words('b')].join(''))
  }
  expect((await server.store.runs.list({ limit: 1000 })).length - before).toBe(runCount)
  return proxy
}

describe('reconnects of the client', () => {
  test(`${reconnects} reconnects over HTTP: every reader holds what the server has, nothing lost, nothing twice`, async () => {
    const proxy = await readThroughCuts({
      nth: 0,
      connect: overHttp,
      cuts: reconnects,
      pages: 12,
      most: { down: 3000, up: 600 },
    })
    expect(proxy.connections).toBeGreaterThanOrEqual(reconnects)
    expect(proxy.broken).toBeGreaterThan(reconnects * 0.9)
  })

  test.each([
    ['a WebSocket', 1, 'websocket', socketCuts, { down: 60_000, up: 5000 }],
    // Each request has a connection of its own, and few of them carry so much.
    ['polling', 3, 'polling', 8 * socketCuts, { down: 1500, up: 1000 }],
  ] as const)(
    'the same over Socket.IO, where one break ends all streams of a page: %s',
    async (_, nth, transport, cuts, most) => {
      const proxy = await readThroughCuts({
        nth,
        connect: (url) => overSocket(url, undefined, transport),
        cuts,
        pages: often(5, 2),
        most,
      })
      expect(proxy.broken).toBeGreaterThan(socketCuts * 0.4)
    },
  )

  test('a start whose connection breaks starts one run', async () => {
    gates[2].open()
    const random = randomOf(seed)
    let left = 4
    // The answer to the start is lost, or the question is.
    const proxy = await cuttingProxy(server.url, () => {
      if (left-- <= 0) return undefined
      return left % 2 === 0
        ? { down: Math.floor(random() * 60), up: Infinity }
        : { down: Infinity, up: Math.floor(random() * 60) }
    })
    onTestFinished(() => proxy.close())
    const before = (await server.store.runs.list({ limit: 1000 })).length
    const run = overHttp(proxy.url).run({ agent: 'a2', messages: 'Hi' })
    expect(await run.result).toMatchObject({ outcome: 'completed', id: await run.id })
    expect(proxy.broken).toBe(4)
    expect((await server.store.runs.list({ limit: 1000 })).length - before).toBe(1)
  })
})
