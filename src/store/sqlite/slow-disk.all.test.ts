/** A disk that takes 20 ms for an fsync holds up nobody who appends: the event loop waits for none, but for one each time the WAL begins anew. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'

/** Delays each fsync of a process by 20 ms, and writes down who asked for it, and when. */
const slowDisk = (log: string) =>
  `-f --seccomp-bpf -qq -ttt -o ${log} -e trace=fsync,fdatasync -e inject=fsync,fdatasync:delay_exit=20000`.split(' ')
// It may be forbidden in a container.
const hasStrace = spawnSync('strace', [...slowDisk('/dev/null'), 'true']).status === 0

/** Appends to 50 runs at once, again and again, and says when it did. */
const program = `
import { sqliteStore } from ${JSON.stringify(join(import.meta.dirname, 'store.ts'))}
const store = sqliteStore(process.argv[2])
const runs = Array.from({ length: 50 }, (_, i) => 'run_' + i)
const entry = (seq, part) => ({ seq, timestamp: seq, step: '', ...part })
const start = (runId) => entry(1, { type: 'run-start', runId, agent: 'a', pipeline: '', threadId: runId, protocol: 'p', input: {} })
await Promise.all(runs.map((run) => store.log.append(run, 1, [start(run)])))
const began = Date.now()
const delta = { type: 'text-delta', id: 't', delta: 'word '.repeat(200) }
for (let seq = 2; seq < 1600; seq++) await Promise.all(runs.map((run) => store.log.append(run, 1, [entry(seq, delta)])))
console.log(JSON.stringify({ pid: process.pid, began, ended: Date.now() }))
await store.close()
`

describe('SQLite on a slow disk', () => {
  test.skipIf(!hasStrace)(
    'on a disk that needs 20 ms for an fsync the event loop waits for none while it appends',
    async () => {
      const dir = mkdtempSync(join(tmpdir(), 'millrace-slow-'))
      onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
      writeFileSync(join(dir, 'append.mjs'), program)
      const node = [process.execPath, '--no-warnings', join(dir, 'append.mjs')]
      const { stdout } = await promisify(execFile)('strace', [
        ...slowDisk(join(dir, 'log')),
        ...node,
        join(dir, 'm.db'),
      ])
      const { pid, began, ended } = JSON.parse(stdout) as Record<'pid' | 'began' | 'ended', number>
      const asked = readFileSync(join(dir, 'log'), 'utf8')
        .split('\n')
        .flatMap((line) => {
          const [, by, at] = /^(\d+) +([\d.]+) f(?:data)?sync\(/u.exec(line) ?? []
          return by === undefined ? [] : [{ isOwn: Number(by) === pid, at: Number(at) * 1000 }]
        })
        .filter(({ at }) => at > began && at < ended)
      const others = asked.filter(({ isOwn }) => !isOwn)
      expect(others.length).toBeGreaterThan(5)
      // It waits only when the WAL begins anew, for one, and before that all of it was written back elsewhere: no turn has two.
      const own = asked.flatMap(({ isOwn, at }) => (isOwn ? [at] : []))
      expect(own.length).toBeLessThan(others.length / 2)
      for (const [i, at] of own.slice(1).entries())
        expect(others.some((other) => other.at > own[i]! && other.at < at)).toBe(true)
    },
  )
})
