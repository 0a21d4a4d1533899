/**
 * A process for crash tests to kill: appends entries to a few runs, and prints `run seq` for each entry that a reader received. It
 * waits when it has written 300 MB: a busy machine may kill it so late that its disk is full.
 */
import { writeSync } from 'node:fs'
import { entry, startEntry } from './example-run.contract.ts'
import { sqliteStore } from './sqlite-store.ts'

const store = sqliteStore(process.argv[2]!)

const more = '.'.repeat(Number(process.argv[3] ?? 0))
const most = 100_000_000 / (more.length + 100)
// What waits for nothing but to be killed would end.
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
