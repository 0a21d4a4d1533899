import type { Log } from '../part/log.ts'

/** The run before a run in its thread, even if that one has no entries. */
export async function predecessor(log: Log, threadId: string, run: string): Promise<string | undefined> {
  for await (const { key, message } of log.inbox(`thread:${threadId}`)) {
    if (!key.startsWith('after:') || (message as { run: string }).run !== run) continue
    return key.slice('after:'.length) || undefined
  }
  return undefined
}
