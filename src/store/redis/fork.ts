/** Forks: copies of the beginning of a run. They are in the partition of their own id, so they cannot refer to the entries of their source. */
import { randomUUID } from 'node:crypto'
import type { Log, RunIndex } from '../../part/log.ts'
import { encodeEntries } from '../encode.ts'
import { dueAt, foldRow, ofFork, type StoredRow } from '../run-row.ts'
import { checkFork, runExists } from '../store-error.ts'
import { indexed } from './append-job.ts'
import type { RedisConnection } from './connection.ts'
import { redisFailed } from './damage-script.ts'
import { listed, operation } from './script.ts'
import { isFailed } from './write-queue.ts'
import type { RedisTexts } from './texts.ts'
import type { Writes } from './writes.ts'

/** Maximum number of entries in a step. */
const most = 256

export function createForking(
  { url }: Pick<RedisConnection, 'url'>,
  log: Pick<Log, 'read'>,
  index: Pick<RunIndex, 'get'>,
  writes: Writes,
  texts: Pick<RedisTexts, 'collect'>,
): Log['fork'] {
  return async (source, seq, run, time, user) => {
    const what = `fork run ${source}`
    const from = await index.get(source)
    checkFork(source, seq, from?.lastSeq)
    // Refused if the entry was merged with later ones.
    for await (const _ of log.read(source, { after: seq, limit: 1 })) break
    const origin = { source, seq, at: time, user }
    const token = randomUUID()
    const operations: string[][] = []

    async function send(args: string[]): Promise<unknown> {
      let result: unknown
      await writes.operate(run, what, async (sendAll) => void ([result] = await sendAll([args])))
      if (isFailed(result)) throw redisFailed(`cannot ${what}`, url, new Error(String(result)))
      operations.push(args)
      return result
    }

    const shared = texts.collect()
    let row: StoredRow | undefined
    for await (const batch of log.read(source, { before: seq + 1 })) {
      for (let at = 0; at < batch.length; at += most) {
        const entries = batch.slice(at, at + most).map((entry) => ofFork(entry, run, origin))
        row = foldRow(row, run, from!.epoch, entries)
        const lines = shared.add(entries, encodeEntries(run, entries))
        await send(operation('stage', [token, row.lastSeq, lines]))
      }
    }
    const { epoch, lastSeq, updatedAt, status } = row!
    const created = await send(
      operation('fork', [
        run,
        token,
        `${seq} ${source}`,
        epoch,
        lastSeq,
        updatedAt,
        status,
        JSON.stringify(row),
        dueAt(row!) ?? '',
        ...listed(indexed(undefined, row!)),
        ...shared.args(),
      ]),
    )
    if (created !== 1) throw runExists(run)
    writes.forked(run, operations)
  }
}
