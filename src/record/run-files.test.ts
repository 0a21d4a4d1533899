/** Which files go with a run. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { exampleRun } from '../store/example-run.contract.ts'
import { sqliteStore } from '../store/sqlite-store.ts'
import { createLogFiles } from './log-files.ts'
import { fileNameOf, withRunFiles } from './run-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-files-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a run takes its own files with it, and none of a run whose id begins with its own and a full stop', async () => {
  const store = sqliteStore(join(folder, 'one.db'))
  const dir = join(folder, 'one')
  mkdirSync(dir)
  const ids = ['run_a', 'run_a.b', 'run_a.b.main/x', 'run_a.ndjson', 'run_ab']
  const steps = ['main/x', 'b/main.y', 'main/x.raw']
  const filesOf = (id: string) => [
    `${fileNameOf(id)}.ndjson`,
    `${fileNameOf(id)}.summary.json`,
    ...steps.map((step) => `${fileNameOf(id)}.${encodeURIComponent(step)}.raw`),
  ]
  for (const id of ids) {
    await store.log.append(id, 1, exampleRun(id))
    for (const name of filesOf(id)) writeFileSync(join(dir, name), id)
  }
  const upkeep = withRunFiles(store.upkeep!, dir)
  const left = new Set(ids)
  for (const id of ids) {
    expect(await upkeep.drop(id)).toBe(true)
    left.delete(id)
    expect(readdirSync(dir).toSorted()).toEqual([...left].flatMap(filesOf).toSorted())
  }
  await store.close()
})

test('a run that is deleted while it is copied leaves no file', async () => {
  const store = sqliteStore(join(folder, 'two.db'))
  const dir = join(folder, 'two')
  const upkeep = withRunFiles(store.upkeep!, dir)
  let isDropped = false
  // The copy has read the entries, and the run goes before it writes the file.
  const read: typeof store.log.read = (run, options) => {
    const batches = store.log.read(run, options)
    if (run !== 'gone') return batches
    return (async function* () {
      for await (const batch of batches) {
        if (!isDropped) isDropped = await upkeep.drop('gone')
        yield batch
      }
    })()
  }
  const files = createLogFiles({ ...store, log: { ...store.log, read } }, dir, () => undefined)
  await store.log.append('gone', 1, exampleRun('gone'))
  await store.log.append('kept', 1, exampleRun('kept'))
  await files.catchUp()
  await files.store.close()
  expect(isDropped).toBe(true)
  expect(readdirSync(dir).toSorted()).toEqual(['kept.ndjson', 'kept.summary.json'])
})

test.skipIf(process.platform === 'win32')(
  'only the owner may read the files of runs, also those that were there',
  async () => {
    const store = sqliteStore(join(folder, 'three.db'))
    const dir = join(folder, 'three')
    mkdirSync(dir, { mode: 0o755 })
    writeFileSync(join(dir, 'old.main%2Fcode.raw'), '', { mode: 0o644 })
    writeFileSync(join(dir, 'run.ndjson'), '', { mode: 0o644 })
    const files = createLogFiles(store, dir, () => undefined)
    await store.log.append('run', 1, exampleRun('run'))
    await files.catchUp()
    await files.store.close()
    const modes = readdirSync(dir).map((name) => (statSync(join(dir, name)).mode & 0o777).toString(8))
    expect(modes).toEqual(['600', '600', '600'])
  },
)
