import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const module = pathToFileURL(join(import.meta.dirname, 'young-generation.ts')).href
/** Objects that live for some time, as those of many streams do; a turn of the event loop now and then. */
const script = (first: string) => `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { boundYoungGeneration } from '${module}'
  ${first}
  for (let round = 0; round < 40; round++) {
    const kept = []
    for (let i = 0; i < 100_000; i++) kept.push({ i, of: [i] })
    await new Promise(setImmediate)
  }
  const { space_size: size } = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')
  console.log(size / 2 ** 20)
`

/** MB of a process that has worked; it also ends by itself. */
async function sizeAfter(first: string, flags: string[] = []): Promise<number> {
  const args = [...flags, '--input-type=module', '-e', script(first)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: {}, timeout: 60_000 })
  return Number(stdout)
}

test('the room for new objects does not grow without end', async () => {
  expect(await sizeAfter('')).toBeGreaterThan(34)
  const size = await sizeAfter('boundYoungGeneration()')
  expect(size).toBeGreaterThan(12)
  expect(size).toBeLessThan(34)
}, 60_000)

test('who has given the process a size keeps it', async () => {
  expect(await sizeAfter('boundYoungGeneration()', ['--max-semi-space-size=32'])).toBeGreaterThan(34)
}, 60_000)
