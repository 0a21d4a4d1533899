import type { Log } from '../part/log.ts'

/** A run and those before it in its thread, each once, the newest first. */
export async function* runsBack(log: Log, threadId: string, last: string): AsyncGenerator<string, void, void> {
  const seen = new Set<string>()
  for (let run: string | undefined = last; run !== undefined && !seen.has(run);) {
    seen.add(run)
    yield run
    run = await predecessor(log, threadId, run)
  }
}

/** The run before a run in its thread, even if that one has no entries. */
export async function predecessor(log: Log, threadId: string, run: string): Promise<string | undefined> {
  for await (const { key, message } of log.inbox(`thread:${threadId}`)) {
    if (!key.startsWith('after:') || (message as { run: string }).run !== run) continue
    return key.slice('after:'.length) || undefined
  }
  return undefined
}
