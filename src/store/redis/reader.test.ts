/** What a reader does when Redis has less than was read, or than it said. */
import { expect, test } from 'vitest'
import { delta } from '../contract/tools.contract.ts'
import { createRowCache } from '../row-cache.ts'
import { entriesLost } from '../store-error.ts'
import type { RunHead, Page, Pages } from './pages.ts'
import { createReader } from './reader.ts'
import { readRow } from './stored-row.ts'
import type { LiveTails } from './tails.ts'

/** Redis answers with these pages, one after the other; `reached` says which entries were waited for. */
function setUp(answers: Page[], { isLate = true, tail = {}, reach = async () => {}, heads = createRowCache() } = {}) {
  const reached: number[] = []
  const pages = { page: async () => answers.shift()! }
  const state = {
    head: undefined as RunHead | undefined,
    isLive: false,
    isSuspect: false,
    ready: Promise.resolve(),
    ...tail,
  }
  const tails = {
    join: () => Object.assign(state, { isLive: true }),
    leave: () => {},
    look: async () => {},
    reach: (_: string, seq: number) => (reached.push(seq), reach()),
  }
  const context = { heads, tails: tails as unknown as LiveTails, pages: pages as unknown as Pages }
  const options = { signal: new AbortController().signal }
  return { reached, ...createReader({ ...context, isLate: () => isLate }, 'r', options) }
}

const head = (seq: number): RunHead => ({ epoch: 1, seq, status: 'running' })
const recent = { after: () => undefined, readers: new Set(), stopWaiting: () => {} }
const told = { head: head(2), recent }
const none: Page = { head: undefined, entries: [] }
const two: Page = { head: head(2), entries: [delta(1), delta(2)] }

test('just after a reconnect, a run that is gone is waited for: its owner writes it again', async () => {
  const { pull, reached } = setUp([none, two], { tail: told })
  expect(await pull()).toBe('again')
  expect(reached).toEqual([2])
  expect(await pull()).toMatchObject({ value: [delta(1), delta(2)], last: false })
})

test('a run that nobody writes again is lost; at any other time, one that is gone was deleted', async () => {
  const reach = () => Promise.reject(entriesLost('r'))
  await expect(setUp([none], { tail: told, reach }).pull()).rejects.toMatchObject({ code: 'store-lost' })
  await expect(setUp([none], { tail: told, isLate: false }).pull()).rejects.toMatchObject({ code: 'unknown-run' })
})

test('a page with less than was said is not the end', async () => {
  const { pull, reached } = setUp([{ head: head(0), entries: [] }, two], { tail: told })
  expect(await pull()).toBe('again')
  expect(reached).toEqual([2])
  expect(await pull()).toMatchObject({ value: [delta(1), delta(2)] })
})

test('the next owner gives its readers nothing before what they read of the last one was compared', async () => {
  const heads = createRowCache()
  const { pull } = setUp([two], { tail: { ...told, isSuspect: true }, heads })
  // It has read as another process's run; then this process claims it, with less than was read.
  expect(await pull()).toBe('wait')
  heads.set('r', readRow('r', [JSON.stringify({ agent: 'a' }), '2', '1', '1', 'running']).row)
  expect(await pull()).toBe('wait')
})
