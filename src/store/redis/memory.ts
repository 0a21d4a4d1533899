/** The memory of Redis: measures the runs, and warns before it is full. */
import { setTimeout as later } from 'node:timers/promises'
import { messageOf } from '../../part/error.ts'
import type { RedisConnection } from './connection.ts'
import { damagedIs } from './damage-script.ts'
import { partitions } from './index-script.ts'
import type { Partition } from './keys.ts'

/** Number of measured runs per partition; with more the size is an estimate. */
const measured = 64
/** The keys of a run that are measured. */
const kinds = ['run', 'log', 'texts', 'inbox', 'messages'] as const
/** Approximate size of a run in the lists: most of it for the words of its title. */
const listed = 4500
/** Polling interval, in ms. */
const lookEvery = 30_000
const warnAt = 0.8

/** Bytes of the runs. Exact for some hundreds of runs, otherwise estimated from random ones. Other users of the same Redis are not counted. */
export async function measureRuns({ keys, ask }: RedisConnection): Promise<number> {
  const what = 'read the size'
  const each = Array.from({ length: partitions }, async (_, partition: Partition) => {
    const tag = keys.tag(partition)
    const key = `${tag}:runs`
    const size = `${tag}:textsize`
    const [count, some, texts] = (await Promise.all([
      ask(what, key, ['ZCARD', key]),
      ask(what, key, ['ZRANDMEMBER', key, String(measured)]),
      ask(what, size, ['GET', size]).catch(damagedIs(undefined)),
    ])) as [number, string[], unknown]
    if (some.length === 0) return 0
    const used = some.flatMap((run) =>
      kinds.map((kind) => ask(what, key, ['MEMORY', 'USAGE', `${tag}:${kind}:${run}`])),
    )
    const bytes = (await Promise.all(used)).reduce<number>((sum, size) => sum + Number(size ?? 0), 0)
    return (bytes / some.length + listed) * count + Math.max(0, Number(texts ?? 0) || 0)
  })
  return Math.round((await Promise.all(each)).reduce((sum, bytes) => sum + bytes, 0))
}

/** Warns that Redis may fill up: once without a limit, and each time that it exceeds 80 % of it. Returns a function that stops it. */
export function watchMemory(
  { keys, url, send, isCluster }: RedisConnection,
  warn: (message: string) => void,
): () => void {
  const ending = new AbortController()
  let [saidNoLimit, saidFull] = [false, false]

  async function look(): Promise<void> {
    // In a cluster each node has some of the partitions.
    const asked = isCluster ? Array.from({ length: partitions }, (_, partition) => partition) : [0]
    const nodes = await Promise.all(asked.map((each) => send(`${keys.tag(each)}:clock`, ['INFO', 'memory'])))
    let [hasLimit, share, most, used] = [true, 0, 0, 0]
    for (const node of nodes) {
      const valueOf = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'mu').exec(String(node))?.[1] ?? 0)
      const limit = valueOf('maxmemory')
      hasLimit &&= limit > 0
      if (limit > 0 && valueOf('used_memory') / limit > share) {
        ;[share, most, used] = [valueOf('used_memory') / limit, limit, valueOf('used_memory')]
      }
    }
    if (!hasLimit && !saidNoLimit) {
      warn(`${url}: Redis has no maxmemory. When the machine's memory is full, the system kills it: set a limit.`)
    }
    saidNoLimit ||= !hasLimit
    if (share > warnAt && !saidFull) {
      const mb = (bytes: number) => Math.round(bytes / 1024 ** 2)
      const cure = 'Give it more, archive sooner (record.archive, record.archiveAfter) or keep less (record.retention).'
      const what = `Redis uses ${Math.round(share * 100)} % of its memory (${mb(used)} of ${mb(most)} MB)`
      warn(`${url}: ${what}. When it is full, runs fail. ${cure}`)
    }
    // Not repeatedly around the limit.
    saidFull = share > (saidFull ? warnAt - 0.1 : warnAt)
  }

  async function watch(): Promise<void> {
    while (!ending.signal.aborted) {
      // A Redis that is unavailable, or refuses INFO, causes no warning.
      await look().catch((error: unknown) => messageOf(error))
      await later(lookEvery, undefined, { signal: ending.signal, ref: false }).catch(() => undefined)
    }
  }

  void watch()
  return () => ending.abort()
}
