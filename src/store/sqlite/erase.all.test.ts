/** A command that deletes something ends when it is erased, and not before. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'millrace-erase-'))
describe('erasing a run', () => {
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('a process that has nothing else to do stays until the file is erased, also when a checkpoint is under way', () => {
    const module = (file: string) => JSON.stringify(resolve('src/store/sqlite', file))
    const script = `
    import { createCheckpoints } from ${module('checkpoint.ts')}
    import { openDatabase } from ${module('schema.ts')}
    const db = openDatabase(${JSON.stringify(join(folder, 'a.db'))}, { busyTimeout: 1000 })
    const checkpoints = createCheckpoints(db, { due: 1, most: 1e9 })
    for (const rewrites of [false, true]) {
      checkpoints.wrote(1)
      console.log(await checkpoints.erase(rewrites))
    }
    await checkpoints.close()
    db.close()`
    const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    expect([stdout, status]).toEqual(['true\ntrue\n', 0])
  })
})
