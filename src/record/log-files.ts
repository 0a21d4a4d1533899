/**
 * Runs as files beside the database: `<run>.ndjson`, one entry per line, and `<run>.summary.json` once a run has ended. They
 * are copies for readers: an entry is written here after it is stored, and entries missing after a crash or a full disk are
 * copied from the log later. The log never waits for them.
 */
import { chmod, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { omitUndefined } from '../part/omit-undefined.ts'
import { messageOf, MillraceError } from '../part/error.ts'
import { fileNameOf } from '../part/file-name.ts'
import { hasEnded, type RunRow, type Store } from '../part/log.ts'
import { pause } from '../async/pause.ts'
import { encodeEntries } from '../store/encode.ts'
import { readView } from '../fold/read-view.ts'
import { appendLines, readTail } from './log-tail.ts'
import { logNamesOf } from './run-files.ts'
import type { RunView } from '../fold/run-view.ts'

export interface LogFiles {
  /** The store. Closing it waits up to 5 s for pending copies. */
  store: Store
  /** Copies runs that have no complete files: recorded by an earlier process, or while log files were off. */
  catchUp(): Promise<void>
}

/** `after`: the last `seq` copied. `last`: the last `seq` recorded. */
interface Copy {
  /** Undefined until the file has been read. */
  after: number | undefined
  last: number
  working: boolean
}

/** ms between two writes to a file: one write per token would cost more than the run. */
const pauseBetweenWrites = 100
const closeTimeout = 5000

/** Creates `dir` when needed. Calls `log` when writing starts to fail, and again only after it has worked. */
export function createLogFiles(inner: Store, dir: string, log: (line: string) => void): LogFiles {
  const copies = new Map<string, Copy>()
  const jobs = new Set<Promise<void>>()
  const closing = new AbortController()
  let failing = false

  // Ids may come from a program or another machine.
  const fileOf = (run: string, ending: string) => join(dir, fileNameOf(run) + ending)

  function note(run: string, last: number): void {
    const copy = copies.get(run) ?? { after: undefined, last, working: false }
    copies.set(run, copy)
    copy.last = Math.max(copy.last, last)
    if (!copy.working) track(copyUntilDone(run, copy))
  }

  function track(job: Promise<void>): void {
    jobs.add(job)
    void job.then(() => jobs.delete(job))
  }

  /** Never rejects. Retries with increasing delays until everything is copied or the server closes. */
  async function copyUntilDone(run: string, copy: Copy): Promise<void> {
    copy.working = true
    for (let delay = 1000; ; delay = Math.min(delay * 2, 60_000)) {
      try {
        await bringUpToDate(run, copy)
        // No `await` between this check and the end: an entry noted in between would not be copied.
        if (copy.after! >= copy.last) break
      } catch (error) {
        // A line may have been written partially: read the file again.
        copy.after = undefined
        // The file ends inside deltas that were merged since: it is written anew.
        if (error instanceof MillraceError && error.code === 'compacted')
          await rm(fileOf(run, '.ndjson'), { force: true }).catch(() => undefined)
        if (await isDeleted(run)) {
          await forget(run)
          break
        }
        reportFailure(error)
        if (closing.signal.aborted) break
        await pause(delay, closing.signal, { background: true })
      }
    }
    copy.working = false
  }

  /** Of a run that was deleted while it was copied: files written after the removal are removed as well. */
  async function forget(run: string): Promise<void> {
    copies.delete(run)
    for (const name of logNamesOf(run)) await rm(join(dir, name), { force: true }).catch(() => undefined)
  }

  async function isDeleted(run: string): Promise<boolean> {
    return (await inner.runs.get(run).catch(() => true)) === undefined
  }

  async function bringUpToDate(run: string, copy: Copy): Promise<void> {
    do {
      const before = copy.after
      await copyEntries(run, copy)
      if (copy.after === before && copy.after! < copy.last) throw new Error(`run ${run} has no entries after ${before}`)
      const row = await inner.runs.get(run)
      if (row === undefined) return forget(run)
      if (hasEnded(row.status)) {
        copy.last = row.lastSeq
        if (copy.after! < row.lastSeq) continue
        await writeSummary(row)
        copies.delete(run)
        if (await isDeleted(run)) await forget(run)
        return
      }
      if (!closing.signal.aborted) await pause(pauseBetweenWrites, closing.signal, { background: true })
    } while (copy.after! < copy.last)
  }

  async function copyEntries(run: string, copy: Copy): Promise<void> {
    const file = fileOf(run, '.ndjson')
    if (copy.after === undefined) {
      await mkdir(dir, { recursive: true, mode: 0o700 })
      const { seq, torn } = await readTail(file)
      if (torn) log(`${file}: the last line was incomplete and is written again`)
      copy.after = seq
    }
    if (copy.after >= copy.last) return
    for await (const batch of inner.log.read(run, { after: copy.after })) {
      if (batch.length === 0) continue
      await appendLines(file, `${encodeEntries(run, batch)}\n`)
      copy.after = batch.at(-1)!.seq
      failing = false
    }
  }

  async function writeSummary(row: RunRow): Promise<void> {
    const view = await readView(inner, row.id)
    if (view === undefined) return
    const file = fileOf(row.id, '.summary.json')
    // Written atomically: if the file exists, the run has been copied.
    await writeFile(`${file}.tmp`, `${JSON.stringify(summaryOf(view), null, 2)}\n`, { mode: 0o600 })
    await rename(`${file}.tmp`, file)
  }

  function reportFailure(error: unknown): true {
    if (!failing && !closing.signal.aborted) {
      log(`log files cannot be written at the moment: ${messageOf(error)}. Runs are still recorded in the database.`)
    }
    return (failing = true)
  }

  async function catchUp(): Promise<void> {
    const done = new Set(await readdir(dir).catch(() => []))
    // Files of earlier versions, that others may read. Those that belong to another account stay as they are.
    for (const name of done) await makePrivate(join(dir, name)).catch(() => undefined)
    for (let before: string | undefined; ;) {
      const page = await inner.runs.list(omitUndefined({ limit: 1000, before }))
      for (const { id, lastSeq } of page) {
        if (closing.signal.aborted) return
        if (done.has(`${fileNameOf(id)}.summary.json`) || copies.get(id)?.working === true) continue
        const copy = { after: undefined, last: lastSeq, working: true }
        copies.set(id, copy)
        const failed = await bringUpToDate(id, copy).then(() => false, reportFailure)
        copy.working = false
        // A run that cannot be copied is retried at the next start: there may be many.
        if (failed) copies.delete(id)
        else if (copy.after! < copy.last) note(id, copy.last)
      }
      before = page.at(-1)?.id
      if (page.length < 1000) return
    }
  }

  /** Notes the entries stored since the position. With a signal: then live, until it aborts. Changes the position. */
  async function noteChanges(signal?: AbortSignal): Promise<void> {
    for await (const changes of inner.log.changes({ after: position, signal })) {
      for (const { n, run, entries } of changes) {
        note(run, entries.at(-1)!.seq)
        position = n
      }
    }
  }

  /** Never rejects. Entries that a failing store hides are noted when it works again. */
  async function follow(): Promise<void> {
    while (!leave.signal.aborted) {
      try {
        position ??= await inner.log.position()
        return await noteChanges(leave.signal)
      } catch (error) {
        reportFailure(error)
        await pause(1000, leave.signal, { background: true })
      }
    }
  }

  let position: number | undefined
  const leave = new AbortController()
  // It asks for the position at once: entries stored from now on are noted.
  const following = follow()

  const store: Store = {
    ...inner,
    async close() {
      leave.abort()
      await following
      // The last entries may not have been noted yet.
      if (position !== undefined) await noteChanges().catch(reportFailure)
      closing.abort()
      let timer: ReturnType<typeof setTimeout> | undefined
      const enough = new Promise((resolve) => (timer = setTimeout(resolve, closeTimeout)))
      await Promise.race([Promise.all(jobs), enough])
      clearTimeout(timer)
      await inner.close()
    },
  }
  return {
    store,
    async catchUp() {
      const job = catchUp().catch((error: unknown) => void reportFailure(error))
      track(job)
      await job
    },
  }
}

async function makePrivate(file: string): Promise<void> {
  const { mode } = await stat(file)
  if ((mode & 0o077) !== 0) await chmod(file, 0o600)
}

/** The summary of a run, as in `<run>.summary.json`: counts named as in the Smithers document, and tokens, cost, duration, status. */
export function summaryOf(view: RunView) {
  const { runId: id, agent, threadId, status, startedAt, endedAt = startedAt, summary, usage, cost, error } = view
  // It can be negative in logs of earlier versions, if the clock was set back.
  const duration = Math.max(0, endedAt - startedAt)
  const { totalTokens: tokens } = usage
  return {
    id,
    agent,
    threadId,
    status,
    startedAt,
    endedAt,
    duration,
    ...summary,
    stream_summary: summary,
    tokens,
    usage,
    cost,
    error,
  }
}
