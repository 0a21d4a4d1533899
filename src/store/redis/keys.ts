/** The names of keys and channels. decisions/0025 lists them all. */
import { MillraceError } from '../../part/error.ts'
import { partitions } from './index-script.ts'

/** The value of the format key. */
export const format = `2 ${partitions}`
/** The same without shared texts. */
export const oldFormat = `1 ${partitions}`

export type Partition = number

/** The partition of a run or an inbox. */
export function partitionOf(id: string): Partition {
  // FNV-1a: short, and the same everywhere.
  let hash = 0x811c9dc5
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193)
  return (hash >>> 0) % partitions
}

export type Keys = ReturnType<typeof createKeys>

/** `prefix`: the tenant's. */
export function createKeys(prefix: string) {
  if (!/^[\w.:/-]{1,64}$/u.test(prefix)) {
    const cure = 'use letters, digits and . : / - _, at most 64'
    throw new MillraceError('bad-config', `the prefix of the Redis URL is not valid: ${cure}`)
  }
  const tags = Array.from({ length: partitions }, (_, partition) => `{${prefix}:${partition}}`)
  /** The `T` of a partition. */
  const tag = (partition: Partition) => tags[partition]!
  const of = (name: string) => (id: string) => `${tag(partitionOf(id))}:${name}:${id}`
  return {
    prefix,
    tag,
    tagOf: (id: string) => tag(partitionOf(id)),
    run: of('run'),
    log: of('log'),
    texts: of('texts'),
    inbox: of('inbox'),
    messages: of('messages'),
    position: of('position'),
    /** Beside the inbox of its thread. */
    title: (thread: string) => `${tag(partitionOf(`thread:${thread}`))}:title:${thread}`,
    /** Channels. */
    live: of('live'),
    bell: of('bell'),
    readers: of('readers'),
    note: (partition: Partition) => `${tag(partition)}:note`,
    changed: (partition: Partition) => `${tag(partition)}:changed`,
    format: `{${prefix}}:format`,
    beats: `{${prefix}:fleet}:beats`,
    takers: `{${prefix}:fleet}:takers`,
    process: (id: string) => `{${prefix}:fleet}:process:${id}`,
    /** These keys do not exist; deleting one shows whether the partition accepts writes. */
    none: [...tags, `{${prefix}:fleet}`].map((each) => `${each}:none`),
  }
}

/** The key of a message as it is stored: without line breaks. */
export function storedKey(key: string): string {
  return key.replaceAll(/[%\n]/gu, encodeURIComponent)
}

/** The reverse of {@link storedKey}. */
export function messageKey(stored: string): string {
  return stored.replaceAll(/%(?:25|0A)/gu, decodeURIComponent)
}
