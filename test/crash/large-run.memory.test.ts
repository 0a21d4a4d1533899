/** A run of 50 MB: a server of its own shows, replays, exports and forks it with the memory that it needs for one of 1 MB. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { pipelineOfRun, recordedEntries } from '../../bench/recorded-run.ts'
import type { Entry } from '../../src/part/entry.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { folder } from '../support/cli.ts'
import { spawnServer } from '../support/server-process.ts'
import { expectSize } from '../support/figure.ts'

/** The most memory that a process has had, in bytes. */
const peakOf = (pid: number) =>
  Number(/VmHWM:\s+(\d+) kB/u.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024

/** A run in which a program prints a line of so many characters beside each delta. Returns the size of its log. */
async function record(file: string, run: string, length: number): Promise<number> {
  const store = sqliteStore(file)
  const raw = 'x'.repeat(length)
  let seq = 0
  let size = 0
  let batch: Entry[] = []
  const add = (part: object, { step, timestamp }: Entry) => {
    batch.push({ ...part, seq: ++seq, step, timestamp } as Entry)
    size += JSON.stringify(batch.at(-1)).length
  }
  for (const entry of recordedEntries(run, 4000)) {
    add(entry, entry)
    if (entry.type === 'text-delta') add({ type: 'cli-output', stream: 'stdout', raw }, entry)
    if (batch.length < 20 && entry.type !== 'run-end') continue
    await store.log.append(run, 1, batch)
    batch = []
  }
  await store.close()
  return size
}

describe('recovery of a large run', () => {
  test.skipIf(!existsSync('/proc/self/status'))(
    'a run of 50 MB is shown, replayed, exported and forked with the memory that a small one needs',
    async () => {
      const data = mkdtempSync(join(tmpdir(), 'millrace-large-'))
      onTestFinished(() => rmSync(data, { recursive: true, force: true }))
      await record(join(data, 'millrace.db'), 'small', 10)
      expect(await record(join(data, 'millrace.db'), 'large', 13_000)).toBeGreaterThan(50e6)
      // V8 collects garbage when it likes. With a bound it must: whoever keeps the run runs out of heap, and what the process has taken is
      // what it needs.
      vi.stubEnv('NODE_OPTIONS', '--max-old-space-size=48')
      onTestFinished(() => void vi.unstubAllEnvs())
      const server = await spawnServer(folder({ 'a.yaml': pipelineOfRun }), data)
      onTestFinished(() => server.kill())

      /** Everything that can be asked of a run. Returns how many bytes came. */
      async function ask(run: string): Promise<number> {
        let bytes = 0
        const paths = ['', '/outline', '/export', '/replay?speed=max&format=ui']
        for (const path of paths) {
          const response = await fetch(`${server.url}/api/runs/${run}${path}`)
          expect(response.status).toBe(200)
          for await (const chunk of response.body!) bytes += chunk.length
        }
        const headers = { 'content-type': 'application/json' }
        const { lastSeq } = (await (await fetch(`${server.url}/api/runs/${run}`)).json()) as { lastSeq: number }
        const body = JSON.stringify({ at: lastSeq })
        const fork = await fetch(`${server.url}/api/runs/${run}/fork`, { method: 'POST', headers, body })
        const { id } = (await fork.json()) as { id: string }
        const status = async () =>
          ((await (await fetch(`${server.url}/api/runs/${id}`)).json()) as { status: string }).status
        await expect.poll(status).toBe('completed')
        return bytes
      }

      await ask('small')
      const before = peakOf(server.pid)
      expect(await ask('large')).toBeGreaterThan(50e6)
      expectSize('growth of the process for a run of 50 MB', peakOf(server.pid) - before, 50e6)
    },
  )
})
