import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createBound } from './heap.ts'

const module = pathToFileURL(join(import.meta.dirname, 'heap.ts')).href
/** How often new objects are made at least, and for how long. V8 grows by what it has collected, so that a slow machine needs as many rounds. */
interface Work {
  rounds: number
  ms: number
}

/** Every 4 ms new objects, which live for 16 ms as what a stream keeps of its last delta lives until the next one. */
const script = (first: string, objects: number, { rounds, ms }: Work) => `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { boundYoungGeneration } from '${module}'
  ${first}
  // Objects of a literal that lives on would soon be made in the old generation.
  const text = JSON.stringify(Array.from({ length: ${objects} }, (_, i) => ({ i, of: [i] })))
  const kept = []
  const end = performance.now() + ${ms}
  for (let round = 0; round < ${rounds} || performance.now() < end; round++) {
    kept.push(JSON.parse(text))
    if (kept.length > 4) kept.shift()
    await new Promise((resolve) => setTimeout(resolve, 4))
  }
  const { space_size: size } = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')
  console.log(size / 2 ** 20)
`
/** Most of these are still alive when the young generation is full. */
const many = 15_000
const few = 5000

/** MB of the young generation of a process that has worked; it also ends by itself. */
async function sizeAfter(
  first: string,
  objects: number,
  { rounds = 400, ms = 0, flags = [] as string[] } = {},
): Promise<number> {
  const args = [...flags, '--input-type=module', '-e', script(first, objects, { rounds, ms })]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: {}, timeout: 60_000 })
  return Number(stdout)
}

test('the room for new objects does not grow without end', async () => {
  const [free, bounded] = await Promise.all(['', 'boundYoungGeneration()'].map((first) => sizeAfter(first, few)))
  expect(free).toBeGreaterThan(34)
  expect(bounded).toBeGreaterThan(12)
  expect(bounded).toBeLessThan(34)
}, 60_000)

test('the room doubles while collections take much of the time', async () => {
  expect(await sizeAfter('boundYoungGeneration()', many, { rounds: 0, ms: 9000 })).toBeGreaterThan(24)
}, 60_000)

const MB = 2 ** 20

/** Sizes in MB after each minute, if V8 doubles the room whenever it may. `cost`: ms of a collection in so many MB, of which there are 20 a second in 16. */
function growth(memory: number, cost: (size: number, minute: number) => number, minutes = 3): number[] {
  const mayGrow = createBound(memory * MB)
  const sizes: number[] = []
  let size = 1
  let now = 5000
  for (let minute = 0; minute < minutes; minute++) {
    for (const end = now + 60_000; now < end; now += 50 * (size / 16)) {
      if (mayGrow(now, size * MB, [cost(size, minute)])) size *= 2
    }
    sizes.push(size)
  }
  return sizes
}

test.each([
  ['3 ms in any room', 8192, () => 3, [32, 32, 32]],
  ['8 ms in any room', 8192, () => 8, [64, 64, 64]],
  ['a tenth of a second in any room', 8192, () => 100, [128, 128, 128]],
  ['1.9 ms: less than 4 % of the time', 8192, () => 1.9, [16, 16, 16]],
  ['twice as long in twice the room', 8192, (size: number) => size / 2, [32, 32, 32]],
  ['3 ms, and later 10', 8192, (_: number, minute: number) => (minute === 0 ? 3 : 10), [32, 128, 128]],
  [
    'twice as long in twice the room, and later 10 ms',
    8192,
    (size: number, minute: number) => (minute === 0 ? size / 2 : 10),
    [32, 128, 128],
  ],
  ['a tenth of a second, 512 MB of memory', 512, () => 100, [32, 32, 32]],
  ['a tenth of a second, 256 MB of memory', 256, () => 100, [16, 16, 16]],
])('a collection takes %s', (_, memory, cost, sizes) => {
  expect(growth(memory, cost)).toEqual(sizes)
})

test('the room grows only after five seconds in a row, and again when V8 has shrunk it', () => {
  const mayGrow = createBound(8192 * MB)
  let now = 0
  /** Whether the room may grow after so many seconds. */
  const pass = (seconds: number, size: number, share: number) => {
    let may = false
    for (const end = now + seconds * 1000; now < end;) may = mayGrow((now += 100), size * MB, [100 * share])
    return may
  }
  expect(pass(1, 1, 0)).toBe(true)
  expect(pass(4, 16, 0.1)).toBe(false)
  expect(pass(1.5, 16, 0.01)).toBe(false)
  expect(pass(4.5, 16, 0.1)).toBe(false)
  expect(pass(2, 16, 0.1)).toBe(true)
  // Each takes three times as long then.
  expect(pass(20, 32, 0.3)).toBe(false)
  expect(pass(4, 16, 0.3)).toBe(false)
  expect(pass(3, 16, 0.3)).toBe(true)
})

test('who has given the process a size keeps it', async () => {
  expect(await sizeAfter('boundYoungGeneration()', few, { flags: ['--max-semi-space-size=32'] })).toBeGreaterThan(34)
}, 60_000)
