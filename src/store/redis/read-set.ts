/** Reads the sets of a partition that only say again what stands elsewhere. One that somebody else has damaged is made anew. */
import type { Connection } from './connection.ts'
import type { Partition } from './keys.ts'
import { readScript } from './read-script.ts'
import { damagedIs } from './redis-failed.ts'
import { upkeepScript } from './upkeep-script.ts'

/** Does an operation of the script that keeps Redis small. */
export const operate = readScript(upkeepScript)

/** `what` completes “cannot …”; `args`: what follows the key. */
export async function readSet<T>(
  connection: Connection,
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
