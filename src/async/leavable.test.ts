import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { leavable } from './leavable.ts'

const done = { done: true, value: undefined }
const never = new Promise<never>(() => {})

test('what it says comes as it is said, also to calls that do not wait for each other', async () => {
  const numbers = () =>
    leavable(async function* () {
      for (let n = 1; n <= 3; n++) {
        await turn()
        yield n
      }
    })
  const items: number[] = []
  for await (const item of numbers()) items.push(item)
  expect(items).toEqual([1, 2, 3])
  const iterator = numbers()
  const answers = await Promise.all(Array.from({ length: 5 }, () => iterator.next()))
  expect(answers.map(({ value }) => value)).toEqual([1, 2, 3, undefined, undefined])
})

test('left while it waits for what never comes: all calls are answered, and it is told', async () => {
  let told = 0
  const iterator = leavable(async function* (left) {
    left.addEventListener('abort', () => told++)
    yield 1
    await never
    yield 2
  })
  expect(await iterator.next()).toEqual({ done: false, value: 1 })
  const waiting = [iterator.next(), iterator.next()]
  expect(await iterator.return()).toEqual(done)
  expect(await Promise.all(waiting)).toEqual([done, done])
  expect([told, await iterator.next(), await iterator.return(), told]).toEqual([1, done, done, 1])
})

test('left between two items it cleans up; left before the first it has not begun', async () => {
  const seen: string[] = []
  const noted = (name: string) =>
    leavable(async function* (left) {
      seen.push(`${name} begins`)
      try {
        yield 1
        yield 2
      } finally {
        seen.push(`${name} ends, left: ${left.aborted}`)
      }
    })
  for await (const _ of noted('broken')) break
  {
    await using used = noted('used')
    await used.next()
  }
  await noted('unread').return()
  await turn()
  expect(seen).toEqual(['broken begins', 'broken ends, left: true', 'used begins', 'used ends, left: true'])
})

test('an error comes once; one behind the leaving is heard by nobody', async () => {
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  const broken = leavable<number>(async function* () {
    yield 1
    throw new Error('broke')
  })
  await broken.next()
  await expect(broken.next()).rejects.toThrow('broke')
  expect(await broken.next()).toEqual(done)
  const late = leavable<number>(async function* (left) {
    yield await new Promise<number>((_resolve, reject) => {
      left.addEventListener('abort', () => reject(new Error('late')))
    })
  })
  const waiting = late.next()
  await late.return()
  expect(await waiting).toEqual(done)
  await turn()
  expect(unhandled).toEqual([])
})
