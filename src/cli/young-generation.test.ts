import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const module = pathToFileURL(join(import.meta.dirname, 'young-generation.ts')).href
/** Every 4 ms new objects. Those of `rounds` such times live, as what a stream keeps of its last delta lives until the next one. */
const script = (first: string, objects: number, ms: number, rounds: number) => `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { boundYoungGeneration } from '${module}'
  ${first}
  // Objects of a literal that lives on would soon be made in the old generation.
  const text = JSON.stringify(Array.from({ length: ${objects} }, (_, i) => ({ i, of: [i] })))
  const kept = []
  const end = performance.now() + ${ms}
  while (performance.now() < end) {
    kept.push(JSON.parse(text))
    if (kept.length > ${rounds}) kept.shift()
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
  { ms = 2500, rounds = 4, flags = [] as string[] } = {},
): Promise<number> {
  const args = [...flags, '--input-type=module', '-e', script(first, objects, ms, rounds)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: {}, timeout: 60_000 })
  return Number(stdout)
}

test('the room for new objects does not grow without end', async () => {
  const [free, bounded] = await Promise.all(['', 'boundYoungGeneration()'].map((first) => sizeAfter(first, few)))
  expect(free).toBeGreaterThan(34)
  expect(bounded).toBeGreaterThan(12)
  expect(bounded).toBeLessThan(34)
}, 60_000)

test('the room doubles while collections take much of the time; not again if all that is new stays, and each takes longer then', async () => {
  const ms = 16_000
  const after = (objects: number, rounds: number) => sizeAfter('boundYoungGeneration()', objects, { ms, rounds })
  const [passing, staying] = await Promise.all([after(many, 4), after(few, 500)])
  expect(passing).toBeGreaterThan(48)
  expect(passing).toBeLessThan(132)
  expect(staying).toBeGreaterThan(24)
  expect(staying).toBeLessThan(40)
}, 60_000)

test('who has given the process a size keeps it', async () => {
  expect(await sizeAfter('boundYoungGeneration()', 2 * many, { flags: ['--max-semi-space-size=32'] })).toBeGreaterThan(
    34,
  )
}, 60_000)
