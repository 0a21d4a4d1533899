/** When claims are sent, and what they say of other processes. */
import { expect, test } from 'vitest'
import { createRowCache } from '../row-cache.ts'
import { startEntry } from '../example-run.contract.ts'
import type { RedisConnection } from './connection.ts'
import { createKeys, partitionOf } from './keys.ts'
import type { Pages } from './pages.ts'
import type { Rows } from './rows.ts'
import type { RedisTexts } from './texts.ts'
import { createWrites, type WritesContext } from './writes.ts'

/** Names of runs in one partition. */
const [run, beside] = Array.from({ length: 100 }, (_, i) => `r${i}`).filter((id) => partitionOf(id) === 3) as [
  string,
  string,
]

function setUp(more: Partial<WritesContext>) {
  const sent: string[][] = []
  /** What becomes of the next scripts: the connection breaks. */
  const breaks: (() => void)[] = []
  const connection = {
    keys: createKeys('p'),
    timeoutMs: 5000,
    async send(_: string, [, , , , ...operations]: string[]) {
      const names = operations.filter((each) => each === 'append' || each === 'claim')
      sent.push(operations)
      const broken = breaks.shift()
      broken?.()
      if (broken !== undefined) throw Object.assign(new Error('cut'), { code: 'ECONNRESET' })
      return names.map((name) => (name === 'append' ? 1 : 0))
    },
    again: async () => {},
    patiently: <T>(_: string, answer: Promise<T>) => answer,
  } as unknown as RedisConnection
  const nothing = () => undefined
  const writes = createWrites({
    connection,
    committed: nothing,
    process: 'a',
    heads: createRowCache(),
    rows: { load: async () => undefined } as unknown as Rows,
    pages: {} as Pages,
    texts: { share: nothing } as unknown as RedisTexts,
    healing: { healed: nothing, mayClaim: nothing, heal: async () => {} },
    dead: () => [],
    written: nothing,
    appended: nothing,
    tookOver: nothing,
    lost: nothing,
    ...more,
  })
  return { writes, sent, breaks }
}

test('after a reconnect claims wait, in their own time: appends of the partition do not wait behind them', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let wait: Promise<void> | undefined = promise
  const { writes, sent } = setUp({
    healing: { healed: () => undefined, mayClaim: () => wait, heal: async () => {} },
  })
  const claimed = writes.claim(run, 1)
  expect(await writes.append({ run: beside, epoch: 1, given: [startEntry(beside)], view: undefined })).toBe('stored')
  expect(sent.map(([name]) => name)).toEqual(['append'])
  wait = undefined
  resolve()
  expect(await claimed).toBe(false)
  expect(sent.map(([name]) => name)).toEqual(['append', 'claim'])
})

test('a claim that waits in the queue while the connection breaks waits there, too', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let wait: Promise<void> | undefined
  const asked = Promise.withResolvers<void>()
  const mayClaim = () => {
    if (wait !== undefined) asked.resolve()
    return wait
  }
  const { writes, sent, breaks } = setUp({ healing: { healed: () => undefined, mayClaim, heal: async () => {} } })
  breaks.push(() => (wait = promise))
  const claimed = writes.claim(run, 1)
  await asked.promise
  await new Promise((done) => setImmediate(done))
  expect(sent).toHaveLength(1)
  wait = undefined
  resolve()
  expect(await claimed).toBe(false)
  expect(sent).toHaveLength(2)
})

test('a claim that is sent again after an outage names those that are dead by then', async () => {
  const dead = ['b']
  const { writes, sent, breaks } = setUp({ dead: () => dead })
  breaks.push(() => void dead.pop())
  expect(await writes.claim(run, 1)).toBe(false)
  expect(sent.map((args) => args.slice(args.indexOf('a') + 3))).toEqual([['1', 'b'], ['0']])
})
