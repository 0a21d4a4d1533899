/** A data folder on a disk that cannot be written, such as a snapshot. */
import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'
import { diskFault, hasDisks, mountDisk } from '../support/disk.ts'

const agent = 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]'

describe('read-only disk', () => {
  test.skipIf(!hasDisks).each([
    ['is read', false],
    ['is refused if its newest entries are in the WAL', true],
  ])(`it %s${diskFault}`, async (_, hasWal) => {
    const cwd = folder({ 'agents/a.yaml': agent })
    const { out } = await ran(['run', 'a', '-m', 'Hello', '--format', 'parts'], { cwd })
    const { runId: run } = JSON.parse(out.slice(0, out.indexOf('\n'))) as { runId: string }
    await ran(['stats'], { cwd })
    const data = join(cwd, '.millrace')
    // As a server leaves it that is killed.
    const db = new DatabaseSync(join(data, 'millrace.db'))
    if (hasWal) db.exec('PRAGMA wal_autocheckpoint = 0; UPDATE runs SET updated_at = updated_at + 1')
    const disk = mountDisk(16 * 1024 * 1024)!
    onTestFinished(() => disk.free())
    const there = join(disk.dir, 'data')
    mkdirSync(there)
    for (const name of ['millrace.db', 'millrace.db-wal'])
      if (existsSync(join(data, name))) copyFileSync(join(data, name), join(there, name))
    db.close()
    disk.makeReadOnly()
    for (const args of [
      ['ps'],
      ['show', run],
      ['logs', run],
      ['verify', 'all'],
      ['export', run],
      ['query', 'SELECT 1'],
      ['stats'],
      ['threads'],
    ]) {
      const { code, out: said, err } = await ran([...args, '--data', there], { cwd })
      if (!hasWal) {
        expect.soft([args, code, err]).toEqual([args, 0, expect.not.stringContaining('behind')])
        if (args[0] === 'ps') expect(said).toContain('a ')
        continue
      }
      const why =
        /newest entries are in .*millrace\.db-wal, which cannot be read in a folder that is read-only\. Copy the folder to where you can write/u
      expect.soft([args, code, err]).toEqual([args, 1, expect.stringMatching(why)])
    }
  })
})
