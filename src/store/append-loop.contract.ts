/**
 * A process for crash tests to kill: appends entries to a few runs, and prints `run seq` for each entry that a reader received. It stops writing at
 * 300 MB: a busy machine may kill it late, and its disk must not fill up.
 */
import { writeSync } from 'node:fs'
import { entry, startEntry } from './example-run.contract.ts'
import { sqliteStore } from './sqlite/store.ts'

const store = sqliteStore(process.argv[2]!)

const more = '.'.repeat(Number(process.argv[3] ?? 0))
const most = 100_000_000 / (more.length + 100)
// Keeps the process alive until it is killed.
setInterval(() => undefined, 60_000)

async function write(run: string): Promise<void> {
  await store.log.append(run, 1, [startEntry(run)])
  for (let seq = 2; seq <= most; seq++)
    await store.log.append(run, 1, [entry(seq, { type: 'text-delta', id: 'a', delta: `${seq}${more}` })])
}

async function report(run: string): Promise<void> {
  // Written synchronously: output that is lost in a buffer would weaken the test.
  for await (const batch of store.log.read(run, { signal: new AbortController().signal }))
    for (const { seq } of batch) writeSync(1, `${run} ${seq}\n`)
}

await Promise.all(['a', 'b', 'c'].flatMap((run) => [report(run), write(run)]))
