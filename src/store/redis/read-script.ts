/** Scripts that read: several keys of a partition in one go. They may be sent twice. */
import { createHash } from 'node:crypto'
import { MillraceError, messageOf } from '../../part/error.ts'
import type { Connection } from './connection.ts'
import type { Partition } from './keys.ts'

/** `text` is Lua; its only key is `T:clock`. */
export function readScript(text: string) {
  const sha = createHash('sha1').update(text).digest('hex')
  /** `what` completes “cannot …”. */
  return async ({ keys, ask }: Connection, what: string, partition: Partition, args: readonly string[]) => {
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
