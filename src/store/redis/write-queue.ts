/**
 * Writes to one partition: one script runs at a time, and later writes go into the next one. So order and failures are simple, and under load a
 * write costs a part of a script.
 */
import { MillraceError, messageOf } from '../../part/error.ts'
import { redisFailed } from './damage-script.ts'
import { isTransientError, isPassingReply, PassingError } from './transient-error.ts'
import { inTime, type RedisConnection } from './connection.ts'
import type { Partition } from './keys.ts'
import { script, sha } from './script.ts'

/** A function is called for each attempt: its result may change while Redis is unavailable. */
export type Operation = string[] | (() => string[])

/** Sends operations and returns their results. */
export type Send = (operations: readonly Operation[]) => Promise<unknown[]>

const argsOf = (operation: Operation) => (typeof operation === 'function' ? operation() : operation)

export interface Job {
  /**
   * Called right before the script is sent. Returns its operation, `alone` if it needs more data first, or `done`. A `MillraceError` fails this job
   * only.
   */
  prepare(): Operation | 'alone' | 'done'
  /** Takes the result of its operation. Returns whether the job is done; if not, `alone` is called. */
  take(result: unknown): boolean
  /**
   * Does the job with operations of its own, at its position in the order. `isRepeated`: its operation was sent more than once, so it may be done
   * already.
   */
  alone?(send: Send, isRepeated: boolean): Promise<void>
  fail(error: MillraceError): void
  /** Completes “cannot …”. */
  what: string
}

export interface WriteQueue {
  add(job: Job): void
  /** Resolves when everything is written. */
  drain(): Promise<void>
}

/** The context that a queue needs from the store. */
export interface WriteContext {
  connection: RedisConnection
  /** A script took `ms`. */
  committed(ms: number): void
  /** Resolves when Redis is available and healed; undefined if it already is. */
  healed(partition: Partition): Promise<void> | undefined
  /** Resolves when other processes, too, had time to heal; undefined if they had. */
  mayClaim(partition: Partition): Promise<void> | undefined
  /** Called before the jobs of a script are prepared, and when their results are taken. */
  begin(partition: Partition): void
}

/** Sends a script. Only for operations that may be sent twice. */
export async function runScript(connection: RedisConnection, partition: Partition, args: readonly string[]) {
  const results = await sendScript(connection, `${connection.keys.tag(partition)}:clock`, args)
  for (const result of results) if (isPassing(result)) throw new PassingError(result.slice(failed.length))
  return results
}

async function sendScript({ send }: RedisConnection, key: string, args: readonly string[]): Promise<unknown[]> {
  try {
    return (await send(key, ['EVALSHA', sha, '1', key, ...args])) as unknown[]
  } catch (error) {
    if (!messageOf(error).startsWith('NOSCRIPT')) throw error
    return (await send(key, ['EVAL', script, '1', key, ...args])) as unknown[]
  }
}

const failed = 'failed: '
export const isFailed = (result: unknown): boolean => typeof result === 'string' && result.startsWith(failed)

/** Whether an operation was refused temporarily, because this server is a replica, or has too few of them. Then the others were refused as well. */
function isPassing(result: unknown): result is string {
  return isFailed(result) && isPassingReply(String(result).slice(failed.length))
}

interface Queued {
  job: Job
  /** The time of failure if Redis stays unavailable. */
  end: number
}

export function createWriteQueue(
  partition: Partition,
  { connection, healed, mayClaim, begin, committed }: WriteContext,
): WriteQueue {
  let queue: Queued[] = []
  let running = false
  let drained: PromiseWithResolvers<void> | undefined
  /** Whether the last script was sent more than once. */
  let isRepeated = false

  async function send(operations: readonly Operation[], what: string, end: number): Promise<unknown[]> {
    for (let tries = 1; ; tries++) {
      try {
        isRepeated = tries > 1
        const healing = healed(partition)
        if (healing) await inTime(healing, end - Date.now())
        // The first writer wins: another process may have been first, and rewrites that.
        const isFirst = operations.map(argsOf).some(([name]) => name === 'post' || name === 'claim')
        const others = isFirst ? mayClaim(partition) : undefined
        if (others) await inTime(others, end - Date.now())
        const began = performance.now()
        const results = await inTime(runScript(connection, partition, operations.flatMap(argsOf)), end - Date.now())
        committed(performance.now() - began)
        return results
      } catch (error) {
        if (!isTransientError(error) || Date.now() >= end) throw redisFailed(`cannot ${what}`, connection.url, error)
        await connection.again()
      }
    }
  }

  async function write(batch: readonly Queued[]): Promise<void> {
    begin(partition)
    const sent = new Map<Queued, Operation>()
    const alone = new Set<Queued>()
    for (const each of batch) {
      try {
        const prepared = each.job.prepare()
        if (prepared === 'alone') alone.add(each)
        else if (prepared !== 'done') sent.set(each, prepared)
      } catch (error) {
        each.job.fail(failureOf(each.job, error))
      }
    }
    if (sent.size > 0) {
      const end = Math.min(...Array.from(sent.keys(), (each) => each.end))
      const what = sent.keys().next().value!.job.what
      try {
        const results = await send([...sent.values()], what, end)
        let i = 0
        for (const each of sent.keys()) if (!settle(each.job, results[i++])) alone.add(each)
      } catch (error) {
        for (const { job } of sent.keys()) job.fail(failureOf(job, error))
      }
    }
    // In their own order, not in that of detection.
    if (alone.size === 0) return
    const again = isRepeated
    for (const each of batch) if (alone.has(each)) await doAlone(each, again && sent.has(each))
  }

  function settle(job: Job, result: unknown): boolean {
    if (isFailed(result)) {
      job.fail(failureOf(job, new Error(String(result))))
      return true
    }
    return job.take(result)
  }

  async function doAlone({ job, end }: Queued, again: boolean): Promise<void> {
    try {
      await job.alone!((operations) => send(operations, job.what, end), again)
    } catch (error) {
      job.fail(failureOf(job, error))
    }
  }

  function failureOf({ what }: Job, error: unknown): MillraceError {
    return error instanceof MillraceError ? error : redisFailed(`cannot ${what}`, connection.url, error)
  }

  async function run(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue
      queue = []
      await write(batch)
    }
    running = false
    drained?.resolve()
    drained = undefined
  }

  return {
    add(job) {
      queue.push({ job, end: Date.now() + connection.timeoutMs })
      if (running) return
      running = true
      setImmediate(run)
    },
    async drain() {
      if (!running) return
      drained ??= Promise.withResolvers()
      await drained.promise
    },
  }
}
