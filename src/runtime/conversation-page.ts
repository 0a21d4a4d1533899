/**
 * A conversation page by page, newest first, so that a long one is not read whole. A page begins where a user (or the system) speaks:
 * then no result of a call that was handed over belongs to a turn on another page.
 */
import { MillraceError } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import type { Message } from '../part/message.ts'
import { withoutResults } from './conversation.ts'
import { predecessor } from './predecessor.ts'
import { createTurns, type Runs } from './turns.ts'

export interface ConversationPage {
  /** Oldest first. */
  messages: Message[]
  /** Pass it as `before` to read the messages before these. Absent if there are none. */
  before?: string
}

interface Place {
  run: string
  /** Messages of the run's turn that are before the place. */
  count: number
}

/**
 * At least `limit` messages, if there are so many: a turn of a user is not cut. `newest`: the newest run of the thread. Throws `bad-input`
 * for a `before` that is no place in this thread.
 */
export async function conversationPage(
  store: Runs,
  threadId: string,
  newest: string,
  { limit, before }: { limit: number; before?: string | undefined },
): Promise<ConversationPage> {
  let place: Place | undefined =
    before === undefined ? { run: newest, count: Infinity } : await readPlace(store, threadId, before)
  const turns = createTurns(store)
  let messages: Message[] = []
  // A recording may say that a run continues itself.
  const seen = new Set<string>()
  while (place !== undefined && !seen.has(place.run)) {
    seen.add(place.run)
    const turn = await turns.read(place.run)
    if (turn === undefined) {
      // The process died before the run's first entry, so only its place in the thread is stored.
      place = toPlace(await predecessor(store.log, threadId, place.run))
      continue
    }
    const all: Message[] = [...turn.asked, ...withoutResults(turn.messages, messages)]
    const earlier = all.slice(0, place.count)
    const start = startOf(earlier, limit - messages.length)
    messages = [...earlier.slice(start), ...messages]
    if (start > 0) return { messages, before: `${place.run}:${start}` }
    place = toPlace(turn.previous)
    if (place !== undefined && messages.length >= limit && speaks(messages[0])) {
      return { messages, before: `${place.run}:` }
    }
  }
  return { messages }
}

/** Where a page of so many messages begins. */
function startOf(messages: readonly Message[], limit: number): number {
  for (let i = Math.max(0, messages.length - limit); i > 0; i--) if (speaks(messages[i])) return i
  return 0
}

function speaks(message: Message | undefined): boolean {
  return message?.role === 'user' || message?.role === 'system'
}

function toPlace(run: string | undefined): Place | undefined {
  return run === undefined ? undefined : { run, count: Infinity }
}

/** `<run>:<count>`; without a count all of the run's messages are before the place. */
async function readPlace({ runs }: Pick<Store, 'runs'>, threadId: string, text: string): Promise<Place> {
  const [, run = '', count = ''] = /^(.*):(\d*)$/su.exec(text) ?? []
  if ((await runs.get(run))?.threadId !== threadId) {
    const cure = 'Pass the messagesBefore of a page of this thread.'
    throw new MillraceError('bad-input', `messagesBefore is no place in thread ${threadId}. ${cure}`, { status: 400 })
  }
  return { run, count: count === '' ? Infinity : Number(count) }
}
