import { beforeEach, describe, expect, test } from 'vitest'
import { createSeal } from '../../../part/sealed-text.ts'
import { memoryStore } from '../../../store/memory-store.ts'
import { openTokenBook, type KeptTokens } from './token-book.ts'

let log: ReturnType<typeof memoryStore>['log']
let time: number
const bookOf = (name = 'a') =>
  openTokenBook(name, { log, seal: createSeal(log, 'tokens', { longest: 10_000 }), now: () => time })
const tokens = (token: string): KeptTokens => ({ token, issuer: 'https://id.example', clientId: 'page' })
const day = 86_400_000

beforeEach(() => {
  log = memoryStore().log
  time = Date.UTC(2026, 10, 29)
})

describe('the tokens of a person in the store', () => {
  test('the newest version counts, from any process, also after months', async () => {
    const [one, two] = [bookOf(), bookOf()]
    expect(await one.latest()).toBeUndefined()
    await one.replace(tokens('first'))
    await two.replace(tokens('second'))
    expect(await one.latest()).toMatchObject({ n: 2, kept: { token: 'second' } })
    time += 100 * day
    expect(await one.latest()).toMatchObject({ n: 2, kept: { token: 'second' } })
    const renewed = await two.renew((await two.latest())!, async () => tokens('third'))
    expect(renewed).toMatchObject({ n: 3, kept: { token: 'third' } })
    expect(await one.latest()).toEqual(renewed)
    await one.replace(undefined)
    expect((await two.latest())!.kept).toBeUndefined()
    time += 200 * day
    expect(await two.latest()).toBeUndefined()
  })

  test('whether a version is the latest is seen at once, over the start of a new inbox, too', async () => {
    const [one, two] = [bookOf(), bookOf()]
    const first = await one.replace(tokens('first'))
    expect([await one.isLatest(first), await two.isLatest(first)]).toEqual([true, true])
    const second = await two.replace(tokens('second'))
    expect([await one.isLatest(first), await one.isLatest(second)]).toEqual([false, true])
    time += 28 * day
    expect(await one.isLatest(second)).toBe(true)
    const third = await two.replace(undefined)
    expect([await one.isLatest(second), await one.isLatest(third)]).toEqual([false, true])
  })

  test('one process renews, the other waits for it', async () => {
    const [one, two] = [bookOf(), bookOf()]
    const first = await one.replace(tokens('first'))
    const work = Promise.withResolvers<KeptTokens>()
    const begun = Promise.withResolvers<void>()
    const renewing = one.renew(first, (before) => {
      begun.resolve()
      expect(before).toEqual(tokens('first'))
      return work.promise
    })
    await begun.promise
    const waiting = two.renew(first, () => Promise.reject(new Error('a second time')))
    work.resolve(tokens('second'))
    expect(await Promise.all([renewing, waiting])).toEqual([await one.latest(), await two.latest()])
    expect((await two.latest())!.kept!.token).toBe('second')
  })

  test('if that fails, the other tries; if it dies, after half a minute', async () => {
    const [one, two] = [bookOf(), bookOf()]
    const first = await one.replace(tokens('first'))
    await expect(one.renew(first, () => Promise.reject(new Error('away')))).rejects.toThrow('away')
    const dies = Promise.withResolvers<KeptTokens>()
    const begun = Promise.withResolvers<void>()
    void one.renew(first, () => {
      begun.resolve()
      return dies.promise
    })
    await begun.promise
    time += 30_000
    expect(await two.renew(first, async () => tokens('second'))).toMatchObject({ n: 2, kept: { token: 'second' } })
  })

  test('whoever signs in meanwhile wins', async () => {
    const [one, two] = [bookOf(), bookOf()]
    const first = await one.replace(tokens('first'))
    const renewed = await one.renew(first, async () => {
      await two.replace(tokens('new'))
      return tokens('renewed')
    })
    expect(renewed.kept!.token).toBe('new')
  })

  test('what is sealed for one does not open for another', async () => {
    await bookOf('a').replace(tokens('first'))
    const period = Math.floor(time / (28 * day))
    for await (const { message } of log.inbox(`access:mcp:a:${period}`)) {
      await log.post(`access:mcp:b:${period}`, 'token:1', message)
    }
    expect((await bookOf('b').latest())!.kept).toBeUndefined()
  })
})
