/** How long compaction and deletion keep the event loop, by a clock of the test; what a kill in their middle leaves; what the tables say after it. */
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readAll } from '../contract/tools.contract.ts'
import { exampleRun } from '../example-run.contract.ts'
import { verify } from '../ndjson.ts'
import { sqliteStore } from './store.ts'
import { folder, newFile, textOf, record } from '../testing/long-run.ts'

describe('upkeep in slices', () => {
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  test('killed in the middle of a compaction, the log is whole and its content the same', async () => {
    const path = newFile()
    const store = sqliteStore(path)
    const entries = exampleRun('r', 15_000)
    await record(store, 'r', entries, 50)
    await store.records!.settle()
    await store.close()
    const script = `
    import { sqliteStore } from ${JSON.stringify(resolve('src/store/sqlite/store.ts'))}
    const store = sqliteStore(${JSON.stringify(path)})
    await store.upkeep.compact('r', { rest: async () => void process.stdout.write('.') })
    process.stdout.write('done')`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let said = ''
    await new Promise<void>((done) =>
      child.stdout.on('data', (text: Buffer) => (said += String(text)).length > 5 && done()),
    )
    const gone = new Promise((done) => child.on('exit', done))
    child.kill('SIGKILL')
    await gone
    expect(said).not.toContain('done')
    const after = sqliteStore(path)
    const left = await readAll(after, 'r')
    expect(left.length).toBeLessThan(entries.length)
    expect(left.length).toBeGreaterThan(1000)
    expect(verify(left)).toEqual([])
    expect(textOf(left)).toBe(textOf(entries))
    await after.upkeep!.compact('r')
    expect((await readAll(after, 'r')).length).toBeLessThan(200)
    await after.close()
  })
})
