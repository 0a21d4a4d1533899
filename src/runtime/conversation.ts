/** For `history: server`: the conversation before a run, from the stored views of the chain of earlier runs. */
import { type Message, messagesOf, splitInstructions } from '../part/message.ts'
import { type Log, hasEnded, type Store } from '../part/log.ts'
import { defaultInline, isLonger, resultsIn } from '../fold/long-results.ts'
import { smallResult } from '../fold/result-handle.ts'
import { entryAt, readInput, readKept } from '../fold/read-view.ts'
import type { EntryOf } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'

export interface Conversation {
  messages: Message[]
  /** Older messages were left out. */
  cut: boolean
}

export interface ConversationLimit {
  messages: number
  /** Length of the messages as JSON. A long result counts as what a model is told of it. */
  characters: number
}

/** Maximum history for a model. The turn that reaches a limit is included whole. decisions/0017 has the reasons. */
export const historyLimit: ConversationLimit = { messages: 2000, characters: 4_000_000 }

/** The history of an agent that summarizes: what a summary covers is read, too, or it could not be found. */
export const summarizedHistoryLimit: ConversationLimit = { messages: 50_000, characters: 16_000_000 }

export interface ConversationOptions {
  /** See {@link conversation}. */
  following?: readonly Message[]
  limit?: ConversationLimit
  /** The run that goes on from there, if it is stored. */
  follower?: string
}

/**
 * The conversation up to and including a run, along the chain of previous runs. `following` are the messages after it: if they
 * begin with results of calls that the run handed over, these replace the run's own.
 */
export async function conversation(
  store: ConversationStores,
  threadId: string,
  run: string,
  { following = [], limit, follower }: ConversationOptions = {},
): Promise<Conversation> {
  const reader = createTurns(store)
  const turns: Message[][] = []
  let next = following
  let later: ConversationTurn | undefined
  let isLost = false
  let messages = 0
  let characters = 0
  // A recording may name itself as the previous run.
  const seen = new Set<string>()
  for (let at: string | undefined = run; at !== undefined && !seen.has(at);) {
    seen.add(at)
    const isFull = limit !== undefined && (messages >= limit.messages || characters >= limit.characters)
    // Cut only before a user or system message: results without their calls would make the request invalid.
    if (isFull && (next[0]?.role === 'user' || next[0]?.role === 'system')) {
      return { messages: turns.reverse().flat(), cut: true }
    }
    const found: ConversationTurn | undefined = await reader.read(at, later)
    isLost = found === undefined
    if (found === undefined) {
      // The process died before the run's first entry, so only its position in the thread is stored. Or the run was deleted.
      at = await runBefore(store.log, later?.threadId ?? threadId, later?.run ?? follower, at)
      continue
    }
    const turn: Message[] = [...splitInstructions(found.asked).rest, ...withoutResults(found.messages, next)]
    turns.push(turn)
    messages += turn.length
    characters += found.told
    next = turn
    later = found
    at = found.previous
  }
  const all = turns.reverse().flat()
  if (!isLost) return { messages: all, cut: false }
  const from = all.findIndex(({ role }) => role === 'user' || role === 'system')
  return { messages: from < 0 ? [] : all.slice(from), cut: true }
}

/** The messages without results of calls that the next turn begins with. */
export function withoutResults(messages: Message[], next: readonly Message[]): Message[] {
  const given = new Set<string>()
  for (const { role, content } of next) {
    if (role !== 'tool') break
    for (const { toolCallId } of content) given.add(toolCallId)
  }
  if (given.size === 0) return messages
  return messages.flatMap((message): Message[] => {
    if (message.role !== 'tool') return [message]
    const content = message.content.filter(({ toolCallId }) => !given.has(toolCallId))
    return content.length === 0 ? [] : [{ ...message, content }]
  })
}

/** A run and the runs before it in its thread, each once, newest first. */
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

/** The run before one without entries, which `follower` names. A fork has its own thread, and what is before it stands in that of its source. */
async function runBefore(
  log: Log,
  threadId: string,
  follower: string | undefined,
  run: string,
): Promise<string | undefined> {
  const seen = new Set<string>()
  for (let [thread, from] = [threadId, follower]; ;) {
    const found = await predecessor(log, thread, run)
    if (found !== undefined || from === undefined || seen.has(from)) return found
    seen.add(from)
    const source = await forkSource(log, from)
    if (source === undefined) return undefined
    thread = source.threadId
    from = source.runId
  }
}

/** The start of the run of which a run is a fork. Undefined if it is none, or if that one was deleted. */
async function forkSource(log: Log, run: string): Promise<EntryOf<'run-start'> | undefined> {
  try {
    const start = await entryAt(log, run, 1)
    if (start?.type !== 'run-start' || start.forkedFrom === undefined) return undefined
    const source = await entryAt(log, start.forkedFrom.runId, 1)
    return source?.type === 'run-start' ? source : undefined
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'unknown-run') return undefined
    throw error
  }
}

/**
 * The messages that runs added to their conversations. Turns of ended runs are cached, so that the next message of a long thread does not read them
 * all.
 */
export type ConversationStores = Pick<Store, 'log' | 'runs' | 'upkeep'>

/** The messages that a run adds to its conversation. */
interface ConversationTurn {
  run: string
  threadId: string
  asked: Message[]
  messages: Message[]
  /** Length as JSON, and the length of what a model is told. */
  characters: number
  told: number
  previous: string | undefined
}

/** Maximum characters of cached turns per store. */
const mostCached = 16_000_000

interface Cached {
  turn: ConversationTurn
  /** See `Upkeep.marks`. */
  mark: string
  /** See `Upkeep.generation`: when the mark was read. */
  generation: number | undefined
}

interface ConversationCache {
  turns: Map<string, Cached>
  characters: number
}

const caches = new WeakMap<Store['runs'], ConversationCache>()

interface TurnReader {
  /**
   * Undefined if the process died before the run's first entry, or the run was deleted. `next`: the turn that names it as the one before. A run of
   * another thread is none: somebody may have imported a run with the id of a deleted one. Only a fork begins in the thread of its source.
   */
  read(run: string, next?: ConversationTurn): Promise<ConversationTurn | undefined>
}

/** For one pass over a conversation: excludes runs that any process deleted before the pass. */
export function createTurns(store: ConversationStores): TurnReader {
  const cache: ConversationCache = caches.get(store.runs) ?? { turns: new Map(), characters: 0 }
  caches.set(store.runs, cache)
  const checked = new Set<string>()
  let generation: Promise<number | undefined> | undefined
  const generationNow = () => (generation ??= store.upkeep?.generation?.() ?? Promise.resolve(undefined))

  async function marksOf(runs: string[]): Promise<(string | undefined)[]> {
    // Without upkeep no run is deleted.
    return store.upkeep === undefined ? runs.map(() => '') : store.upkeep.marks(runs)
  }

  /** Drops deleted runs from the cache, for a run and the cached turns before it: one request to the store for all of them. */
  async function check(run: string): Promise<void> {
    const known: [run: string, cached: Cached][] = []
    const now = await generationNow()
    for (let at: string | undefined = run; at !== undefined && !checked.has(at);) {
      const cached = cache.turns.get(at)
      if (cached === undefined) break
      checked.add(at)
      if (now === undefined || cached.generation !== now) known.push([at, cached])
      at = cached.turn.previous
    }
    if (known.length === 0) return
    const marks = await marksOf(known.map(([each]) => each))
    for (const [i, [each, cached]] of known.entries()) {
      if (cached.mark !== marks[i] && cache.turns.get(each) === cached) forget(cache, each)
    }
  }

  async function isOfThread(turn: ConversationTurn, next: ConversationTurn | undefined): Promise<boolean> {
    if (next === undefined || turn.threadId === next.threadId) return true
    const start = await entryAt(store.log, next.run, 1)
    return start?.type === 'run-start' && start.forkedFrom !== undefined
  }

  async function find(run: string): Promise<ConversationTurn | undefined> {
    await check(run)
    const known = cache.turns.get(run)
    if (known !== undefined) {
      cache.turns.delete(run)
      cache.turns.set(run, known)
      return known.turn
    }
    const now = await generationNow()
    // Read before the run: a deletion in between changes the mark.
    const [mark] = await marksOf([run])
    const stored = await readKept(store, run)
    if (stored === undefined) return undefined
    const { messages, threadId, previousRunId: previous } = stored
    // The input of a run that continues another has only new messages, and all are stored.
    const asked = previous === undefined ? messagesOf(await readInput(store.log, run)) : stored.asked
    const characters = JSON.stringify(asked).length + JSON.stringify(messages).length
    const turn = { run, threadId, asked, messages, characters, told: characters - leftOut(messages), previous }
    if (hasEnded(stored.status) && mark !== undefined) remember(cache, run, { turn, mark, generation: now })
    checked.add(run)
    return turn
  }

  return {
    async read(run, next) {
      const turn = await find(run)
      return turn !== undefined && (await isOfThread(turn, next)) ? turn : undefined
    },
  }
}

/** Characters of long results that a model is not told, if its agent does not say otherwise. */
function leftOut(messages: readonly Message[]): number {
  let characters = 0
  for (const result of resultsIn(messages)) {
    if (isLonger(result, defaultInline)) characters += JSON.stringify(result.output).length - smallResult
  }
  return characters
}

function remember(cache: ConversationCache, run: string, cached: Cached): void {
  forget(cache, run)
  cache.turns.set(run, cached)
  cache.characters += cached.turn.characters
  for (const oldest of cache.turns.keys()) {
    if (cache.characters <= mostCached) break
    forget(cache, oldest)
  }
}

function forget(cache: ConversationCache, run: string): void {
  cache.characters -= cache.turns.get(run)?.turn.characters ?? 0
  cache.turns.delete(run)
}

/**
 * A conversation page by page, newest first, so that a long one is not read whole. A page begins with a user or system message: then no result of a
 * handed-over call belongs to a turn on another page.
 */
interface ConversationPage {
  /** Oldest first. */
  messages: Message[]
  /** Pass it as `before` to read the messages before these. Absent if there are none. */
  before?: string
}

interface ConversationPosition {
  run: string
  /** Messages of the run's turn that are before the place. */
  count: number
}

/**
 * At least `limit` messages, if the conversation has as many: a user's turn is not cut. `newest`: the newest run of the thread. Throws `bad-input`
 * for a `before` that is no position in this thread.
 */
export async function conversationPage(
  store: ConversationStores,
  threadId: string,
  newest: string,
  { limit, before }: { limit: number; before?: string | undefined },
): Promise<ConversationPage> {
  let place: ConversationPosition | undefined =
    before === undefined ? { run: newest, count: Infinity } : await readPlace(store, threadId, before)
  const turns = createTurns(store)
  let messages: Message[] = []
  let later: ConversationTurn | undefined
  // A recording may name itself as the previous run.
  const seen = new Set<string>()
  while (place !== undefined && !seen.has(place.run)) {
    seen.add(place.run)
    const turn: ConversationTurn | undefined = await turns.read(place.run, later)
    if (turn === undefined) {
      // The process died before the run's first entry, so only its position in the thread is stored.
      place = toPlace(await predecessor(store.log, threadId, place.run))
      continue
    }
    const all: Message[] = [...turn.asked, ...withoutResults(turn.messages, messages)]
    const earlier = all.slice(0, place.count)
    const start = startOf(earlier, limit - messages.length)
    messages = [...earlier.slice(start), ...messages]
    if (start > 0) return { messages, before: `${place.run}:${start}` }
    later = turn
    place = toPlace(turn.previous)
    if (place !== undefined && messages.length >= limit && speaks(messages[0])) {
      return { messages, before: `${place.run}:` }
    }
  }
  return { messages }
}

/** The start of a page of `limit` messages. */
function startOf(messages: readonly Message[], limit: number): number {
  for (let i = Math.max(0, messages.length - limit); i > 0; i--) if (speaks(messages[i])) return i
  return 0
}

function speaks(message: Message | undefined): boolean {
  return message?.role === 'user' || message?.role === 'system'
}

function toPlace(run: string | undefined): ConversationPosition | undefined {
  return run === undefined ? undefined : { run, count: Infinity }
}

/** `<run>:<count>`; without a count, all of the run's messages are before the position. */
async function readPlace({ runs }: Pick<Store, 'runs'>, threadId: string, text: string): Promise<ConversationPosition> {
  const [, run = '', count = ''] = /^(.*):(\d*)$/su.exec(text) ?? []
  if ((await runs.get(run))?.threadId !== threadId) {
    const cure = 'Pass the messagesBefore of a page of this thread.'
    throw new MillraceError('bad-input', `messagesBefore is no place in thread ${threadId}. ${cure}`, { status: 400 })
  }
  return { run, count: count === '' ? Infinity : Number(count) }
}
