/** What a reader has seen is in the database file, whenever the process is killed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { endEntry } from '../example-run.contract.ts'
import { sqliteStore } from './store.ts'
import { readAll } from '../contract/tools.contract.ts'
import { someOf } from '../../../test/support/thorough.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-store-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newPath = () => join(folder, `${++files}`, 'millrace.db')

describe('sqliteStore', () => {
  test.for([
    ...someOf([1, 40, 200, 500], 1).map((reports): [number, number] => [reports, 0]),
    // While the WAL is written back.
    ...someOf([300, 500], 1).map((reports): [number, number] => [reports, 100_000]),
  ])('a process killed after %d reports of %d characters has lost none of them', async ([reports, length]) => {
    const path = newPath()
    const program = fileURLToPath(new URL('../append-loop.contract.ts', import.meta.url))
    const child = spawn(process.execPath, [program, path, String(length)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    const delivered = new Map<string, number>()
    let count = 0
    for await (const line of createInterface(child.stdout)) {
      const [run, seq] = line.split(' ')
      delivered.set(run!, Number(seq))
      if (++count === reports) child.kill('SIGKILL')
    }
    expect(await exited).toEqual([null, 'SIGKILL'])
    expect(count).toBeGreaterThanOrEqual(reports)
    const store = sqliteStore(path)
    for (const [run, seq] of delivered) {
      const row = await store.runs.get(run)
      expect(row?.lastSeq).toBeGreaterThanOrEqual(seq)
      expect(await store.log.claim(run, 1)).toBe(true)
      await store.log.append(run, 2, [endEntry(row!.lastSeq + 1)])
      const seqs = (await readAll(store, run)).map((e) => e.seq)
      expect(seqs).toEqual(Array.from({ length: row!.lastSeq + 1 }, (_, i) => i + 1))
    }
    await store.close()
  })
})
