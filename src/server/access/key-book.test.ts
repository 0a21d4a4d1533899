import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { memoryStore } from '../../store/memory-store.ts'
import { sqliteStore } from '../../store/sqlite/store.ts'
import type { Log } from '../../part/log.ts'
import { digestOf } from './digest.ts'
import { keyNumberOf } from './key-number.ts'
import { addKey, keyInbox, listKeys, openKeyBook, revokeKey, rotateKey, type KeyBookOptions } from './key-book.ts'

const at = { now: 1000 }
const fail = (error: unknown) => {
  throw error
}

async function bookOf(log: Log, options: Partial<KeyBookOptions> = {}) {
  const book = openKeyBook(log, { onError: fail, ...options })
  onTestFinished(() => book.close())
  await book.ready
  return { ...book, by: async (secret: string, now = 2000) => book.find(await digestOf(secret), now) }
}

const storeLog = () => {
  const store = memoryStore()
  onTestFinished(() => store.close())
  return store.log
}

describe('keys in the store', () => {
  test('a key is found by its secret, of which only the digest is stored', async () => {
    const log = storeLog()
    const secret = await addKey(log, { name: 'ci', role: 'operator', tenant: 'acme', agents: ['a'] }, at)
    expect(secret).toMatch(/^mr_[\w-]{43}$/u)
    const book = await bookOf(log)
    expect(await book.by(secret)).toEqual({
      id: 'key:ci',
      key: 'ci',
      roles: ['operator'],
      tenant: 'acme',
      agents: ['a'],
    })
    expect(await book.by(`${secret}x`)).toBeUndefined()
    const stored: unknown[] = []
    for await (const message of log.inbox(keyInbox)) stored.push(message)
    expect(JSON.stringify(stored)).not.toContain(secret.slice(3))
    expect(JSON.stringify(stored)).toContain(await digestOf(secret))
  })

  test('a key ends at its moment', async () => {
    const log = storeLog()
    const secret = await addKey(log, { name: 'ci', role: 'user', expiresAt: 3000 }, at)
    const book = await bookOf(log)
    expect(await book.by(secret, 2999)).toMatchObject({ expiresAt: 3000 })
    expect(await book.by(secret, 3000)).toBeUndefined()
  })

  test('a name is that of one key; of two that are added at once, one is', async () => {
    const log = storeLog()
    const added = await Promise.allSettled([
      addKey(log, { name: 'ci', role: 'user' }, at),
      addKey(log, { name: 'ci', role: 'admin' }, at),
    ])
    expect(added.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    await expect(addKey(log, { name: 'ci', role: 'user' }, at)).rejects.toMatchObject({ code: 'key-exists' })
    await expect(addKey(log, { name: 'MILLRACE_API_KEY', role: 'user' }, at)).rejects.toMatchObject({
      code: 'bad-input',
    })
    await revokeKey(log, 'ci', at)
    const again = await addKey(log, { name: 'ci', role: 'user' }, at)
    expect(await (await bookOf(log)).by(again)).toMatchObject({ id: 'key:ci' })
  })

  test('a rotation is a new secret with the same rights, and ends the streams of the old one', async () => {
    const log = storeLog()
    const first = await addKey(log, { name: 'ci', role: 'operator', limits: { runsPerMinute: 3 }, expiresAt: 9000 }, at)
    const book = await bookOf(log)
    const ended = new Promise<void>((end) => book.onRevoked('ci', end))
    const second = await rotateKey(log, 'ci', at)
    await ended
    expect(await book.by(first)).toBeUndefined()
    await expect.poll(() => book.by(second)).toMatchObject({ roles: ['operator'], expiresAt: 9000 })
    const [key] = await listKeys(log)
    expect(key).toEqual({
      name: 'ci',
      role: 'operator',
      limits: { runsPerMinute: 3 },
      createdAt: 1000,
      expiresAt: 9000,
    })
    // The principals of both are equal, and those who asked with the first may keep it.
    const endedAgain = new Promise<void>((end) => book.onRevoked('ci', end))
    await revokeKey(log, 'ci', at)
    await endedAgain
  })

  test('a stream that opens just after the revocation of its key ends', async () => {
    const log = storeLog()
    await addKey(log, { name: 'ci', role: 'user' }, at)
    const book = await bookOf(log)
    const ended = new Promise<void>((end) => book.onRevoked('ci', end))
    await revokeKey(log, 'ci', at)
    await ended
    await new Promise<void>((end) => book.onRevoked('ci', end))
  })

  test('a stream that opens just after the rotation of its key ends, and one of the new key does not', async () => {
    const log = storeLog()
    const first = await addKey(log, { name: 'ci', role: 'user' }, at)
    const book = await bookOf(log)
    const before = (await book.by(first))!
    const ended = new Promise<void>((end) => book.onRevoked('ci', end, keyNumberOf(before)))
    const second = await rotateKey(log, 'ci', at)
    await ended
    await new Promise<void>((end) => book.onRevoked('ci', end, keyNumberOf(before)))
    await expect.poll(() => book.by(second)).toEqual(before)
    let isOver = false
    book.onRevoked('ci', () => (isOver = true), keyNumberOf((await book.by(second))!))
    await new Promise((done) => setImmediate(done))
    expect(isOver).toBe(false)
  })

  test('unknown keys are refused with the nearest name', async () => {
    const log = storeLog()
    await addKey(log, { name: 'deploy', role: 'user' }, at)
    await expect(revokeKey(log, 'deplyo', at)).rejects.toThrow('There is no key "deplyo" (did you mean "deploy"?).')
    await expect(rotateKey(log, 'other', at)).rejects.toMatchObject({ code: 'unknown-key' })
  })

  test('a key of the config keeps its name', async () => {
    const log = storeLog()
    const secret = await addKey(log, { name: 'ci', role: 'admin' }, at)
    const errors: unknown[] = []
    const book = await bookOf(log, { taken: new Set(['ci']), onError: (error) => errors.push(error) })
    expect(await book.by(secret)).toBeUndefined()
    expect(errors).toHaveLength(1)
  })

  test('rows that are no keys are skipped', async () => {
    const log = storeLog()
    await log.post(keyInbox, 'add:0:a', 'text')
    await log.post(keyInbox, 'add:0:b', { digest: 'x', role: 'god' })
    await log.post(keyInbox, 'something', { digest: 'x', role: 'admin' })
    await log.post(keyInbox, 'revoke:0:never', null)
    expect(await listKeys(log)).toEqual([])
    expect((await bookOf(log)).find('x', 0)).toBeUndefined()
  })

  test('known keys count on while the store is away, and new ones when it is back', async () => {
    const log = storeLog()
    const secret = await addKey(log, { name: 'ci', role: 'user' }, at)
    let isAway = false
    const errors: unknown[] = []
    const rings: (() => void)[] = []
    const wrapped: Pick<Log, 'inbox'> = {
      inbox(name, options) {
        if (options?.signal === undefined || !isAway) return log.inbox(name, options)
        throw new Error('away')
      },
    }
    isAway = true
    const book = openKeyBook(wrapped, {
      onError: (error) => errors.push(error),
      startTimer: (_ms, ring) => {
        rings.push(ring)
        return () => undefined
      },
    })
    onTestFinished(() => book.close())
    await book.ready
    await expect.poll(() => rings.length).toBe(1)
    expect(errors).toHaveLength(1)
    expect(book.find(await digestOf(secret), 0)).toMatchObject({ key: 'ci' })
    isAway = false
    const other = await addKey(log, { name: 'new', role: 'user' }, at)
    rings[0]!()
    await expect.poll(async () => book.find(await digestOf(other), 0)).toMatchObject({ key: 'new' })
  })

  test('a key that another instance of a SQLite store revokes ends here', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'keys-'))
    const [here, there] = [sqliteStore(join(dir, 'a.db')), sqliteStore(join(dir, 'a.db'))]
    onTestFinished(async () => {
      await here.close()
      await there.close()
      rmSync(dir, { recursive: true })
    })
    const book = await bookOf(here.log)
    const secret = await addKey(there.log, { name: 'ci', role: 'user' }, at)
    await expect.poll(() => book.by(secret)).toMatchObject({ key: 'ci' })
    const ended = new Promise<void>((end) => book.onRevoked('ci', end))
    const began = performance.now()
    await revokeKey(there.log, 'ci', at)
    await ended
    expect(performance.now() - began).toBeLessThan(1000)
    expect(await book.by(secret)).toBeUndefined()
  })
})
