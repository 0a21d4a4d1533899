/** All writes of a process: appends, claims, messages, views and fleet hints. Each goes to the queue of its partition. */
import { randomUUID } from 'node:crypto'
import type { MillraceError } from '../../part/error.ts'
import type { Appended, NewMessage, Posted } from '../../part/log.ts'
import { decodeMessage, encodeEntries, encodeMessage } from '../encode.ts'
import type { RowCache } from '../row-cache.ts'
import { encodeMessages } from '../post-all.ts'
import type { StoredRow } from '../run-row.ts'
import { storeClosed } from '../store-error.ts'
import { createAppendJob, type AppendContext, type Appending, type AppendRequest, type Change } from './append-job.ts'
import type { RedisConnection } from './connection.ts'
import { partitionOf, storedKey, type Partition } from './keys.ts'
import type { LostRewriter } from './rewrite-lost.ts'
import type { Pages } from './pages.ts'
import type { Rows } from './rows.ts'
import { isUndated } from './fork-times.ts'
import { readRow } from './stored-row.ts'
import { listed, operation } from './script.ts'
import type { RedisTexts } from './texts.ts'
import { createWriteQueue, type Job, type Send, type WriteQueue } from './write-queue.ts'

/** A write, for the process that must repeat it if Redis loses it. */
export type Written =
  | { type: 'append'; change: Change }
  | { type: 'claim'; run: string; epoch: number; token: string; seq: number }
  | { type: 'post'; inbox: string; args: string[] }
  /** `operations`: its pages, then the fork itself. */
  | { type: 'fork'; run: string; operations: string[][] }

export interface WritesContext {
  connection: RedisConnection
  /** A script took `ms`. */
  committed(ms: number): void
  /** The id of this process. */
  process: string
  heads: RowCache
  rows: Rows
  pages: Pages
  texts: RedisTexts
  healing: Pick<LostRewriter, 'healed' | 'mayClaim' | 'heal'>
  /** Processes that this one considers dead: their runs may be claimed. */
  dead(): readonly string[]
  /** Called when a write is stored, before its promise resolves. */
  written(what: Written): void
  appended(appending: Appending): void
  /** A run of another process was claimed. */
  tookOver(): void
  /** This process is no longer the owner of the run. */
  lost(run: string): void
}

export type Writes = ReturnType<typeof createWrites>

export function createWrites(context: WritesContext) {
  const { connection, process, heads, rows, pages, texts, healing, dead, written, appended, tookOver, lost } = context
  const queues = new Map<Partition, WriteQueue>()
  /** Rows of runs after the current script, and runs whose row is unknown, by partition. */
  const expected = new Map<Partition, Map<string, StoredRow>>()
  const unsure = new Map<Partition, Set<string>>()
  let closed = false
  let pending = 0

  const appends: AppendContext = {
    process,
    rows,
    pages,
    expected: (run) => expected.get(partitionOf(run))!.get(run) ?? heads.get(run)?.row,
    expect: (run, row) => void expected.get(partitionOf(run))!.set(run, row),
    isUnsure: (run) => unsure.get(partitionOf(run))!.has(run),
    doubt: (run) => void unsure.get(partitionOf(run))!.add(run),
    encode: (run, entries) => encodeEntries(run, entries, heads.get(run)?.toLine),
    share: texts.share,
    missing: texts.missing,
    stored(appending) {
      const { run, before, row, lines, shared, view } = appending
      if (shared !== undefined) texts.stored(run, shared)
      written({ type: 'append', change: { run, before, row, lines, view } })
      appended(appending)
    },
    outdated: lost,
    lastKnown: (run) => heads.get(run)?.row.lastSeq ?? 0,
    heal: healing.heal,
  }

  function queueOf(id: string): WriteQueue {
    const partition = partitionOf(id)
    let queue = queues.get(partition)
    if (queue === undefined) {
      const begin = () => {
        expected.set(partition, new Map())
        unsure.set(partition, new Set())
      }
      queues.set(
        partition,
        (queue = createWriteQueue(partition, {
          connection,
          healed: healing.healed,
          mayClaim: healing.mayClaim,
          begin,
          committed: context.committed,
        })),
      )
    }
    return queue
  }

  /** Queues a job, which settles a promise. */
  function write<T>(
    id: string,
    what: string,
    make: (settle: { resolve(value: T): void; reject(error: MillraceError): void }) => Omit<Job, 'what' | 'fail'>,
  ): Promise<T> {
    if (closed) return Promise.reject(storeClosed(what))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    queueOf(id).add({ fail: reject, ...make({ resolve, reject }), what })
    pending++
    const settled = () => void pending--
    promise.then(settled, settled)
    return promise
  }

  /** An operation whose result is the whole outcome. */
  function simple<T>(id: string, what: string, args: string[], read: (result: unknown) => T): Promise<T> {
    return write<T>(id, what, ({ resolve }) => ({
      prepare: () => args,
      take(result) {
        resolve(read(result))
        return true
      },
    }))
  }

  /** Before it is queued, so that appends need not wait behind it. */
  function mayClaim(id: string, what: string): Promise<void> | undefined {
    const wait = healing.mayClaim(partitionOf(id))
    return wait && connection.patiently(what, wait)
  }

  return {
    /** Number of pending writes. */
    get pending() {
      return pending
    },

    append: (request: AppendRequest) =>
      write<Appended>(request.run, `append to run ${request.run}`, (settle) =>
        createAppendJob(appends, request, settle),
      ),

    async claim(run: string, epoch: number): Promise<boolean> {
      const wait = mayClaim(run, `claim run ${run}`)
      if (wait) await wait
      const token = randomUUID()
      return write<boolean>(run, `claim run ${run}`, ({ resolve }) => ({
        prepare() {
          // Whether it succeeds is unknown before the script has run.
          appends.doubt(run)
          return () => claimOperation(process, { run, epoch, token }, dead())
        },
        take(result) {
          if (Array.isArray(result)) {
            const [seq, at, row, isTaken, origin] = result as [string, string, string, number, string]
            if (isTaken === 1) tookOver()
            written({ type: 'claim', run, epoch, token, seq: Number(seq) })
            const known = readRow(run, [row, String(epoch + 1), seq, at, 'running'])
            // Else it is read when it is needed: what is left of it, or with the time of the fork.
            if (!known.isDamaged && !isUndated(known.row, origin)) heads.set(run, known.row)
          }
          resolve(Array.isArray(result))
          return true
        },
      }))
    },

    async post(inbox: string, messages: readonly NewMessage[]): Promise<Posted[]> {
      const encoded = encodeMessages(inbox, messages)
      if (encoded.length === 0) return []
      const wait = mayClaim(inbox, `post to run ${inbox}`)
      if (wait) await wait
      const texts = encoded.flatMap(({ key, text }) => [storedKey(key), text])
      const args = operation('post', [inbox, randomUUID(), encoded.length, ...texts])
      return simple(inbox, `post to run ${inbox}`, args, (result) => {
        const posted = (result as (1 | string)[]).map((each, i): Posted => {
          const isFirst = each === 1
          return { first: isFirst, message: isFirst ? encoded[i]!.message : decodeMessage(String(each)) }
        })
        if (posted[0]!.first) written({ type: 'post', inbox, args })
        return posted
      })
    },

    keepView(run: string, seq: number, view: unknown): Promise<void> {
      const args = operation('view', [run, seq, encodeMessage(run, 'view', view)])
      return simple(run, `keep the view of run ${run}`, args, () => undefined)
    },

    /** Without a moment: the run is released. Resolves with whether messages have come that the caller has not seen. */
    want(run: string, at?: number, seen?: number): Promise<boolean> {
      if (at === undefined) lost(run)
      const args = operation('want', [run, at ?? '', process, seen ?? ''])
      return simple(run, `want an owner for run ${run}`, args, (result) => result === 2)
    },

    /** Call this after creating a fork. */
    forked: (run: string, operations: string[][]): void => written({ type: 'fork', run, operations }),

    /** Operations of other modules, in the order of the partition of `id`. They may be sent twice. */
    operate(id: string, what: string, task: (send: Send) => Promise<void>): Promise<void> {
      return write<void>(id, what, ({ resolve }) => ({
        prepare: () => 'alone',
        take: () => false,
        alone: async (send) => resolve(await task(send)),
      }))
    },

    async close(): Promise<void> {
      closed = true
      await Promise.all(Array.from(queues.values(), (queue) => queue.drain()))
    },
  }
}

export function claimOperation(
  process: string,
  { run, epoch, token }: { run: string; epoch: number; token: string },
  dead: readonly string[],
  { force = false } = {},
): string[] {
  return operation('claim', [run, epoch, process, token, force ? '1' : '', ...listed(dead)])
}
