/** Who reads a run, in all processes: each with readers subscribes to a channel, and the subscribers are counted. */
import type { Beats } from './beats.ts'
import type { Channels } from './channels.ts'
import type { Connection } from './connection.ts'
import { partitionOf } from './keys.ts'

export interface Attendance {
  attend(run: string): () => void
  attended(run: string): Promise<boolean>
}

export function createAttendance(
  { keys, ask }: Connection,
  channels: Channels,
  beats: Pick<Beats, 'isDisturbed'>,
): Attendance {
  /** Readers here. */
  const readers = new Map<string, number>()
  /** Subscriptions that are being ended. */
  const leaving = new Map<string, Promise<void>>()
  /** Questions of one tick, by partition. */
  const asked = new Map<number, Map<string, PromiseWithResolvers<number>>>()

  function leave(run: string): void {
    const left = channels.close(keys.readers(run)).finally(() => {
      if (leaving.get(run) === left) leaving.delete(run)
    })
    leaving.set(run, left)
  }

  async function count(partition: number): Promise<void> {
    const questions = asked.get(partition)!
    asked.delete(partition)
    const names = [...questions.keys()].map((run) => keys.readers(run))
    try {
      const args = ['PUBSUB', 'SHARDNUMSUB', ...names]
      const found = (await ask('count readers', names[0]!, args)) as (string | number)[]
      const counts = new Map<unknown, unknown>()
      for (let i = 0; i < found.length; i += 2) counts.set(found[i], found[i + 1])
      for (const [run, { resolve }] of questions) resolve(Number(counts.get(keys.readers(run)) ?? 0))
    } catch (error) {
      for (const { reject } of questions.values()) reject(error)
    }
  }

  function countOf(run: string): Promise<number> {
    const partition = partitionOf(run)
    let questions = asked.get(partition)
    if (questions === undefined) {
      asked.set(partition, (questions = new Map()))
      setImmediate(() => void count(partition))
    }
    let question = questions.get(run)
    if (question === undefined) questions.set(run, (question = Promise.withResolvers()))
    return question.promise
  }

  return {
    attend(run) {
      const before = readers.get(run) ?? 0
      readers.set(run, before + 1)
      if (before === 0) channels.open(keys.readers(run), () => undefined).catch(() => undefined)
      let reads = true
      return () => {
        if (!reads) return
        reads = false
        const left = readers.get(run)! - 1
        if (left > 0) readers.set(run, left)
        else {
          readers.delete(run)
          leave(run)
        }
      }
    },
    async attended(run) {
      if (readers.has(run)) return true
      await leaving.get(run)
      // Others may be about to subscribe again.
      if (readers.has(run) || beats.isDisturbed()) return true
      return (await countOf(run)) > 0
    },
  }
}
