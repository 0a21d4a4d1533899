import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const module = pathToFileURL(join(import.meta.dirname, 'young-generation.ts')).href
/** Every 4 ms new objects, which live for 16 ms as what a stream keeps of its last delta lives until the next one. */
const script = (first: string, objects: number, ms: number) => `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { boundYoungGeneration } from '${module}'
  ${first}
  const kept = []
  const end = performance.now() + ${ms}
  while (performance.now() < end) {
    const round = []
    for (let i = 0; i < ${objects}; i++) round.push({ i, of: [i] })
    kept.push(round)
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
async function sizeAfter(first: string, objects: number, { ms = 2500, flags = [] as string[] } = {}): Promise<number> {
  const args = [...flags, '--input-type=module', '-e', script(first, objects, ms)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: {}, timeout: 60_000 })
  return Number(stdout)
}

test('the room for new objects does not grow without end', async () => {
  const [free, bounded] = await Promise.all(['', 'boundYoungGeneration()'].map((first) => sizeAfter(first, few)))
  expect(free).toBeGreaterThan(34)
  expect(bounded).toBeGreaterThan(12)
  expect(bounded).toBeLessThan(34)
}, 60_000)

test('it has twice the room while much of it moves to the old generation', async () => {
  const size = await sizeAfter('boundYoungGeneration()', many, { ms: 8000 })
  expect(size).toBeGreaterThan(24)
  expect(size).toBeLessThan(68)
}, 60_000)

test('who has given the process a size keeps it', async () => {
  expect(await sizeAfter('boundYoungGeneration()', 2 * many, { flags: ['--max-semi-space-size=32'] })).toBeGreaterThan(
    34,
  )
}, 60_000)
