import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../store/memory-store.ts'
import { createSealedTokens, hashCall, longestTaskId, longestTaskRun, withoutTokens } from './sealed-token.ts'

const ann = { id: 'ann', tenant: 'acme' }
const run = 'run_0123456789abcdef0123456789abcdef'
const echo = (id: string) => Promise.resolve(id)

function tokens(log = memoryStore().log) {
  const time = { now: 1000 }
  return { log, time, ...createSealedTokens(log, { now: () => time.now }) }
}

describe('the id of a task', () => {
  test('is visible ASCII, is short, shows nothing of the run, and differs each time', async () => {
    const { sealTask, openTask } = tokens()
    for (const id of [run, 'a run', 'x'.repeat(longestTaskRun), 'ü'.repeat(longestTaskRun / 2)]) {
      const token = await sealTask({ run: id, expiresAt: 4_102_444_800_000 }, ann)
      expect(token).toMatch(/^[!-~]+$/u)
      expect(token.length).toBeLessThanOrEqual(longestTaskId)
      expect(token).not.toContain(id)
      expect(await sealTask({ run: id }, ann)).not.toBe(token)
      expect(await openTask(token, ann, echo)).toBe(id)
    }
    await expect(sealTask({ run: 'x'.repeat(longestTaskRun + 1) }, ann)).rejects.toMatchObject({ code: 'bad-input' })
  })

  test('opens at every instance, also when two make the key at once', async () => {
    const { log } = memoryStore()
    const [one, other] = [tokens(log), tokens(log)]
    const [a, b] = await Promise.all([one.sealTask({ run }, ann), other.sealTask({ run }, ann)])
    expect(await other.openTask(a, ann, echo)).toBe(run)
    expect(await one.openTask(b, ann, echo)).toBe(run)
    expect(await tokens().openTask(a, ann, echo)).toBeUndefined()
  })

  test('opens for its caller, until it expires', async () => {
    const { sealTask, openTask, time } = tokens()
    const token = await sealTask({ run, expiresAt: 2000 }, ann)
    const others = [{ id: 'ann' }, { id: 'bob', tenant: 'acme' }, { id: 'ann', tenant: 'other' }, { id: '' }]
    for (const other of others) expect(await openTask(token, other, echo)).toBeUndefined()
    time.now = 1999
    expect(await openTask(token, ann, echo)).toBe(run)
    time.now = 2000
    expect(await openTask(token, ann, echo)).toBeUndefined()
  })

  test('has one form: bits of its last character that say nothing must be 0', async () => {
    const { sealTask, openTask } = tokens()
    const token = await sealTask({ run: 'run_1' }, ann)
    const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
    const opened = await Promise.all(letters.map((char) => openTask(token.slice(0, -1) + char, ann, echo)))
    expect(opened.filter((each) => each !== undefined)).toHaveLength(1)
  })

  test('counts for nothing once any character is another', async () => {
    const { sealTask, openTask } = tokens()
    const token = await sealTask({ run }, ann)
    await fc.assert(
      fc.asyncProperty(fc.nat(token.length - 1), fc.constantFrom(...'aZ09-_ !é'), async (at, char) => {
        fc.pre(token[at] !== char)
        const changed = token.slice(0, at) + char + token.slice(at + 1)
        expect(await openTask(changed, ann, echo)).toBeUndefined()
      }),
      { numRuns: 60 },
    )
  })

  test('asks the store for a run whatever is wrong with it', async () => {
    const { sealTask, openTask, seal, time } = tokens()
    const token = await sealTask({ run, expiresAt: 2000 }, ann)
    const state = await seal('state', { run }, ann)
    const wrong = [undefined, 7, '', run, 'mrtask_', 'mrtask_!', `${token}A`, 'mrtask_'.padEnd(5000, 'A'), state]
    for (const each of [...wrong, token.replace('mrtask', 'mrstate')]) {
      const asked: string[] = []
      expect(await openTask(each, ann, async (id) => asked.push(id))).toBeUndefined()
      expect(asked).toEqual(['run_00000000000000000000000000000000'])
    }
    time.now = 5000
    const asked: string[] = []
    await openTask(token, ann, async (id) => asked.push(id))
    await openTask(token, { id: 'bob' }, async (id) => asked.push(id))
    expect(asked).toHaveLength(2)
    expect(asked).not.toContain(run)
  })

  test('is undefined where the run is not found', async () => {
    const { sealTask, openTask } = tokens()
    expect(await openTask(await sealTask({ run }, ann), ann, () => Promise.resolve(undefined))).toBeUndefined()
  })
})

describe('other tokens', () => {
  test('hold JSON for their caller and kind, until they expire', async () => {
    const { seal, open, time } = tokens()
    const data = { run, keys: { confirm: `${run}.1.2` }, call: await hashCall('desk', {}) }
    const token = await seal('state', data, ann, 2000)
    expect(token).not.toContain(run)
    expect(await open('state', token, ann)).toEqual(data)
    expect(await open('session', token, ann)).toBeUndefined()
    expect(await open('session', token.replace('mrstate', 'mrsession'), ann)).toBeUndefined()
    expect(await open('state', token, { id: 'ann' })).toBeUndefined()
    for (const wrong of [undefined, {}, '', `${token.slice(0, -1)}`, 'x'.repeat(70_000)])
      expect(await open('state', wrong, ann)).toBeUndefined()
    time.now = 2000
    expect(await open('state', token, ann)).toBeUndefined()
  })
})

test('the hash of a call is that of its tool and arguments, in any order of keys', async () => {
  const hash = await hashCall('desk', { a: 1, b: [{ c: 1, d: 2 }] })
  expect(await hashCall('desk', { b: [{ d: 2, c: 1 }], a: 1 })).toBe(hash)
  expect(await hashCall('desk', { b: [{ d: 2, c: 1 }], a: '1' })).not.toBe(hash)
  expect(await hashCall('desk2', { a: 1, b: [{ c: 1, d: 2 }] })).not.toBe(hash)
})

test('logs get no token', async () => {
  const { sealTask, seal } = tokens()
  const task = await sealTask({ run }, ann)
  const session = await seal('session', {}, ann)
  expect(withoutTokens(`POST /mcp ${task}, then ${session}.`)).toBe('POST /mcp mrtask_***, then mrsession_***.')
  expect(withoutTokens('my_mrtask is fine')).toBe('my_mrtask is fine')
})
