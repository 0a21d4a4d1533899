import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isHeld, lockData } from './data-lock.ts'

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

describe('data folder lock', () => {
  test('who holds a folder is seen, and looking leaves no file', () => {
    const data = folder()
    expect([isHeld(data, 'server'), isHeld(data, 'anyone'), readdirSync(data)]).toEqual([false, false, []])
    const run = lockData(data, 'shared')!
    expect([isHeld(data, 'server'), isHeld(data, 'anyone')]).toEqual([false, true])
    const another = lockData(data, 'shared')
    expect(another).toBeDefined()
    expect(lockData(data, 'alone', 0)).toBeUndefined()
    run()
    another!()
    const server = lockData(data, 'alone')!
    expect([isHeld(data, 'server'), isHeld(data, 'anyone')]).toEqual([true, true])
    expect(lockData(data, 'shared', 0)).toBeUndefined()
    server()
    expect([isHeld(data, 'server'), isHeld(data, 'anyone')]).toEqual([false, false])
  })

  test.each([
    ['text', (file: string) => writeFileSync(file, 'pid 123\n'.repeat(200))],
    ['a folder', (file: string) => mkdirSync(file)],
  ])('a lock file that is %s is named, and what to do about it', (_, put) => {
    const data = folder()
    const file = join(data, 'server.lock')
    put(file)
    const cure = expect.stringMatching(/must be an empty file.*delete the file/u)
    expect(() => lockData(data, 'alone')).toThrow(expect.objectContaining({ code: 'data-lock', message: cure }))
    expect(() => lockData(data, 'shared')).toThrow(file)
    expect(isHeld(data, 'server')).toBe(false)
  })

  test('a look of another is waited out', async () => {
    const data = folder()
    lockData(data, 'alone')!()
    const go = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(
      `const { parentPort, workerData: { file, go } } = require('node:worker_threads')
     const db = new (require('node:sqlite').DatabaseSync)(file)
     db.exec('BEGIN EXCLUSIVE')
     parentPort.postMessage('held')
     Atomics.wait(go, 0, 0)
     // Longer than nothing, shorter than patience.
     Atomics.wait(go, 0, 1, 30)
     db.close()`,
      { eval: true, workerData: { file: join(data, 'server.lock'), go } },
    )
    onTestFinished(() => void worker.terminate())
    await new Promise((held) => worker.once('message', held))
    expect(lockData(data, 'shared', 0)).toBeUndefined()
    Atomics.store(go, 0, 1)
    Atomics.notify(go, 0)
    const release = lockData(data, 'shared', 5000)
    expect(release).toBeDefined()
    release!()
  })
})
