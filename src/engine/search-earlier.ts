/**
 * Searches earlier conversations, for tools. A run that belongs to a user sees those of this user with its agent. One that belongs to no one or to a
 * key, which may serve many people, sees those of its own thread, and other threads of its agent with the same text in `$input.user`.
 */
import { keptOf } from '../fold/read-view.ts'
import { textOf } from '../fold/run-view.ts'
import type { EntryOf } from '../part/entry.ts'
import { isSameOwner, runsOf } from '../part/principal.ts'
import type { SaidEarlier } from '../tools/tool.ts'
import type { Scope } from './scope.ts'

type Context = Pick<Scope, 'runId' | 'threadId' | 'store'> & { state: { start: EntryOf<'run-start'> | undefined } }

/** Maximum number of hits that are checked, newest first; most may belong to other users. */
const mostHits = 300

/** The newest messages that contain all the words, at most `limit`. */
export async function searchEarlier(context: Context, words: string, limit: number): Promise<SaidEarlier[]> {
  const { runId, threadId, store, state } = context
  const { start } = state
  const person = personOf(start)
  const known = new Map<string, boolean>()
  const found = new Map<string, SaidEarlier>()

  async function mayBeSeen(run: string): Promise<boolean> {
    if (run === runId) return false
    if (!known.has(run)) {
      const other = await firstOf(store, run)
      known.set(run, other !== undefined && isSameOwner(start?.user, other.user) && personOf(other) === person)
    }
    return known.get(run)!
  }

  // Without a person, only the thread distinguishes people.
  const within = person === undefined ? threadId : undefined
  for await (const { run, thread, ...said } of places(context, words, within)) {
    if (!(await mayBeSeen(run))) continue
    // A client that keeps the history sends the same message with each run.
    const key = `${thread}\n${said.text}`
    if (!found.has(key)) found.set(key, { threadId: thread, ...said })
    if (found.size === limit) break
  }
  return [...found.values()]
}

interface EarlierRun extends Omit<SaidEarlier, 'threadId'> {
  run: string
  thread: string
}

async function* places({ store, state }: Context, q: string, threadId?: string): AsyncGenerator<EarlierRun> {
  const { agent = '', user } = state.start ?? {}
  const where = { ...(threadId === undefined ? { agent } : { threadId }), ...runsOf(user) }
  const { records, runs } = store
  if (records !== undefined) {
    for (const hit of await records.search({ q, ...where, kinds: ['user', 'text'], limit: mostHits })) {
      const { run, threadId: thread, timestamp: at, kind, excerpt: text } = hit
      yield { run, thread, at, by: kind === 'user' ? 'user' : 'assistant', text }
    }
    return
  }
  // A store without tables keeps few runs.
  const words = q.toLowerCase().split(/\s+/u).filter(Boolean)
  for (const row of await runs.list({ ...where, limit: 100 })) {
    const { asked = [], messages = [] } = (await keptOf(store, row)) ?? {}
    for (const message of [...asked, ...messages].toReversed()) {
      const text = textOf(message)
      if (!words.every((word) => text.toLowerCase().includes(word))) continue
      const by = message.role === 'user' ? 'user' : 'assistant'
      yield { run: row.id, thread: row.threadId, at: row.startedAt, by, text: text.slice(0, 200) }
    }
  }
}

async function firstOf({ log }: Scope['store'], run: string): Promise<EntryOf<'run-start'> | undefined> {
  for await (const [first] of log.read(run, { limit: 1 })) return first?.type === 'run-start' ? first : undefined
  return undefined
}

/** Who speaks in a run: its owner, unless that is a program, or else whoever the request names. */
function personOf(start: EntryOf<'run-start'> | undefined): string | undefined {
  const owner = start?.user
  if (owner !== undefined && owner.key === undefined) return `owner ${owner.id}`
  const user = start?.input['user']
  return typeof user === 'string' && user !== '' ? `input ${user}` : undefined
}
