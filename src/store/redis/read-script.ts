/** Scripts that read several keys of a partition at once. They may be sent twice. */
import { createHash } from 'node:crypto'
import { MillraceError, messageOf } from '../../part/error.ts'
import type { RedisConnection } from './connection.ts'
import type { Partition } from './keys.ts'
import { damagedIs } from './damage-script.ts'
import { upkeepScript } from './upkeep-script.ts'

/** `text` is Lua; its only key is `T:clock`. */
export function readScript(text: string) {
  const sha = createHash('sha1').update(text).digest('hex')
  /** `what` completes “cannot …”. */
  return async ({ keys, ask }: RedisConnection, what: string, partition: Partition, args: readonly string[]) => {
    const key = `${keys.tag(partition)}:clock`
    try {
      return (await ask(what, key, ['EVALSHA', sha, '1', key, ...args])) as string[]
    } catch (error) {
      const cause = error instanceof MillraceError ? error.cause : undefined
      if (cause === undefined || !messageOf(cause).startsWith('NOSCRIPT')) throw error
      return (await ask(what, key, ['EVAL', text, '1', key, ...args])) as string[]
    }
  }
}

/* Reads the derived sets of a partition. A damaged one is rebuilt. */

/** Runs an operation of the upkeep script. */
export const operate = readScript(upkeepScript)

/** `what` completes “cannot …”; `args`: the arguments after the key. */
export async function readSet<T>(
  connection: RedisConnection,
  what: string,
  partition: Partition,
  set: 'due' | 'ended' | 'compacted',
  [command, ...args]: [string, ...string[]],
): Promise<T[]> {
  const key = `${connection.keys.tag(partition)}:${set}`
  const read = () => connection.ask(what, key, [command, key, ...args])
  const found = await read().catch(damagedIs(undefined))
  if (found !== undefined) return found as T[]
  await operate(connection, what, partition, ['check', set])
  return (await read()) as T[]
}
