/** Which files go with a run. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { fileNameOf } from '../part/file-name.ts'
import type { Upkeep } from '../part/upkeep.ts'
import { exampleRun } from '../store/example-run.contract.ts'
import { sqliteStore } from '../store/sqlite/store.ts'
import { createLogFiles } from './log-files.ts'
import { withRunFiles } from './run-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-files-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Ids of which one begins another, and those that no file system would take. */
const ids = [
  'run_a',
  'run_a.b',
  'run_a.main',
  'run_a/main',
  'run_a%2Emain',
  '.a',
  'é'.repeat(256),
  `${'é'.repeat(255)}e`,
]

describe('withRunFiles', () => {
  test.each(ids)('who deletes run %s leaves the files of all others', async (deleted) => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-'))
    onTestFinished(() => rmSync(dir, { recursive: true }))
    const endings = ['ndjson', 'summary.json', 'summary.json.tmp', `${fileNameOf('main/b.ndjson')}.raw`]
    for (const id of ids) for (const ending of endings) writeFileSync(join(dir, `${fileNameOf(id)}.${ending}`), '')
    expect(readdirSync(dir)).toHaveLength(ids.length * endings.length)
    const upkeep = withRunFiles({ drop: async () => true } as unknown as Upkeep, dir)
    await upkeep.drop(deleted)
    const left = ids.filter((id) => id !== deleted).flatMap((id) => endings.map((each) => `${fileNameOf(id)}.${each}`))
    expect(readdirSync(dir).toSorted()).toEqual(left.toSorted())
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
})
