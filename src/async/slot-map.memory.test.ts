import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** Most MB of the old generation while 200 objects are in it, of 150 MB that come and go. */
async function oldGeneration(create: string): Promise<number> {
  const script = `
    const { getHeapSpaceStatistics } = require('node:v8')
    import(${JSON.stringify(join(import.meta.dirname, 'slot-map.ts'))}).then(({ SlotMap, SlotSet }) => {
      ${create}
      const old = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space').space_used_size / 1e6
      const here = []
      let most = 0
      const before = old()
      for (let i = 0; i < 40000; i++) {
        const entry = ['run_' + i, { big: Array.from({ length: 150 }, (_, n) => ({ n })) }]
        put(...entry)
        here.push(entry)
        if (here.length > 200) drop(...here.shift())
        if (i % 500 === 0) most = Math.max(most, old() - before)
      }
      console.log(most)
    })`
  const args = ['--max-semi-space-size=4', '--no-warnings', '-e', script]
  return Number((await promisify(execFile)(process.execPath, args)).stdout)
}

test('what has left is collected with the young generation; a Map and a Set keep it', async () => {
  const map = 'const map = new X(), put = (key, value) => map.set(key, value), drop = (key) => map.delete(key)'
  const set = 'const set = new X(), put = (key, value) => set.add(value), drop = (key, value) => set.delete(value)'
  const [lean, leanSet, theirs, theirSet] = await Promise.all(
    [map.replace('X', 'SlotMap'), set.replace('X', 'SlotSet'), map.replace('X', 'Map'), set.replace('X', 'Set')].map(
      oldGeneration,
    ),
  )
  expect(lean).toBeLessThan(theirs! / 2)
  expect(leanSet).toBeLessThan(theirSet! / 2)
})

test('what was deleted or cleared is not held by its place', async () => {
  const script = `
    import(${JSON.stringify(join(import.meta.dirname, 'slot-map.ts'))}).then(async ({ SlotMap, SlotSet }) => {
      const cleared = new SlotMap(), map = new SlotMap(), set = new SlotSet()
      const refs = (() => {
        const objects = [{}, {}, {}]
        cleared.set('a', objects[0])
        cleared.clear()
        map.set('a', objects[1])
        map.delete('a')
        set.add(objects[2])
        set.delete(objects[2])
        return objects.map((object) => new WeakRef(object))
      })()
      await new Promise(setImmediate)
      gc()
      console.log(refs.map((ref) => ref.deref() === undefined).join(), cleared.size + map.size + set.size)
    })`
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', '--no-warnings', '-e', script])
  expect(stdout).toBe('true,true,true 0\n')
})
