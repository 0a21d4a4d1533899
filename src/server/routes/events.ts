/** `GET /api/runs/:id/events`: the log of a run: followed live, or a snapshot, whole or a window of it. */
import { runIdHeader, deliveryResponse } from '../../delivery/delivery-response.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { type Entry, isDelta } from '../../part/entry.ts'
import { hasEnded, type Log, type ReadOptions } from '../../part/log.ts'
import { partTypes } from '../../part/part.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { checkCursor } from '../../fold/read-view.ts'
import { partsSseWire, partsWire } from '../../wire/parts/parts.ts'
import { openDelivery, type OpenAnswer } from '../../delivery/open-delivery.ts'
import { preferredType, bad, readQuery, wholeNumber } from '../http/query.ts'
import type { HandlerContext } from '../handler-context.ts'
import { existingRun } from './existing-run.ts'
import { createCompaction } from '../../fold/compaction.ts'
import { MillraceError } from '../../part/error.ts'

const parameters = { after: 400, types: 2000, follow: 1, before: 20, limit: 20, merge: 1, step: 2000, cut: 20 }
/** Parameters that request a window. */
const windowNames = ['before', 'limit', 'merge', 'step', 'cut'] as const
type Query = ReturnType<typeof readQuery<keyof typeof parameters>>

export async function getEvents(context: HandlerContext, request: Request, id: string, url: URL): Promise<Response> {
  const { status, lastSeq } = await existingRun(context, id)
  const query = readQuery(url, parameters)
  const sse = preferredType(request, ['text/event-stream', 'application/x-ndjson']) === 'text/event-stream'
  const cursor = (sse ? request.headers.get('last-event-id') : null) ?? query.after ?? '0'
  const after = wholeNumber(seqOf(cursor, id), 'after', 0, Number.MAX_SAFE_INTEGER)
  // A cursor beyond the end of the log belongs to another run or to a lost log.
  if (after > lastSeq) throw bad('after', `at most ${lastSeq}, the last entry of run ${id}`)
  const types = readTypes(query.types)
  const isFollowed = flag(query, 'follow') || sse
  const shown = readShown(query, { after, lastSeq })
  if (shown !== undefined) {
    const { name, window, merges, cut } = shown
    if (isFollowed) throw bad(name, 'absent while you follow a run: leave out follow=1 and Accept: text/event-stream')
    const batches = readWindow(context.runtime.store.log, id, omitUndefined({ ...window, types }))
    return snapshot(id, merges ? mergeBatches(batches) : batches, cut)
  }
  const ended = hasEnded(status)
  if (ended) await checkCursor(context.runtime.store.log, id, after)
  const isRead = ended && after === lastSeq
  // The client has everything. 204 tells an EventSource not to reconnect.
  if (sse && isRead) return new Response(null, { status: 204, headers: { 'x-millrace-run-id': runIdHeader(id) } })
  if (isFollowed && !isRead) {
    const wire = sse ? partsSseWire : partsWire
    const options = omitUndefined({ types })
    const answer = await openDelivery(context, { runId: id, wire, options, from: after + 1 })
    // Whether an ended run is readable is checked before anything is sent: its archive may be unavailable.
    if (ended) await unlessItFails(answer)
    return deliveryResponse(wire, id, answer)
  }
  return snapshot(id, context.runtime.store.log.read(id, omitUndefined({ after, types })))
}

async function unlessItFails(answer: OpenAnswer<string>): Promise<void> {
  try {
    await answer.reader.peek()
  } catch (error) {
    answer.drop(true)
    throw error
  }
}

/** A cursor is a `seq`, because the URL names the run. It may include the run: `<run>~<seq>`, as in `/api/live`. */
function seqOf(cursor: string, id: string): string {
  const at = cursor.lastIndexOf('~')
  const named = cursor.slice(0, Math.max(at, 0))
  if (at < 0 || named === id || named === encodeURIComponent(id)) return cursor.slice(at + 1)
  throw bad('after', `a position of run ${id}, not one of ${named}`)
}

function flag(query: Query, name: 'follow' | 'merge'): boolean {
  const { [name]: given } = query
  if (given !== undefined && given !== '0' && given !== '1') throw bad(name, '1 or 0')
  return given === '1'
}

function readTypes(listed: string | undefined): Entry['type'][] | undefined {
  const types = listed?.split(',')
  const unknown = types?.find((type) => !partTypes.includes(type))
  if (unknown === undefined) return types as Entry['type'][] | undefined
  throw bad('types', `a list of part types, and "${unknown}" is not one${didYouMean(unknown, partTypes)}`)
}

interface EventsOptions {
  /** The first parameter that requests a window. */
  name: string
  window: LogWindow
  merges: boolean
  cut: number | undefined
}

/** The window and text limit of a request, which only apply to a snapshot. Undefined if it has neither. */
function readShown(query: Query, { after, lastSeq }: { after: number; lastSeq: number }): EventsOptions | undefined {
  const name = windowNames.find((each) => query[each] !== undefined)
  if (name === undefined) return undefined
  const number = (of: 'before' | 'limit' | 'cut', min: number, max: number) =>
    query[of] === undefined ? undefined : wholeNumber(query[of], of, min, max)
  const before = number('before', 1, Number.MAX_SAFE_INTEGER)
  const limit = number('limit', 1, 10_000)
  const cut = number('cut', 2, 1_000_000)
  if (before !== undefined && before <= after) throw bad('before', `greater than after, which is ${after}`)
  const window = omitUndefined({
    // With `before` alone, the window has the last entries before it.
    after: before === undefined || query.after !== undefined ? after : undefined,
    // Only stored entries: the run may continue.
    before: Math.min(before ?? Infinity, lastSeq + 1),
    limit,
    step: query.step,
  })
  return { name, window, merges: flag(query, 'merge'), cut }
}

/** The entries as NDJSON, read page by page. Rejects if the first page cannot be read. */
async function snapshot(id: string, batches: AsyncIterable<Entry[]>, cut?: number): Promise<Response> {
  const { contentType } = partsWire
  const encoder = partsWire.createEncoder()
  const entries = batches[Symbol.asyncIterator]()
  const bytes = new TextEncoder()
  let first: IteratorResult<Entry[]> | undefined = await entries.next()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = first ?? (await entries.next())
          first = undefined
          if (done) return controller.close()
          for (const entry of value) encoder.write(cut === undefined ? entry : cutEntry(entry, cut))
          const text = encoder.take()
          if (text !== '') return controller.enqueue(bytes.encode(text))
        }
      },
      async cancel() {
        await entries.return?.()
      },
    },
    { highWaterMark: 0 },
  )
  const headers = {
    'content-type': contentType,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    'x-millrace-run-id': runIdHeader(id),
  }
  return new Response(body, { headers })
}

/** A window of a run's log: by `seq`, step and number, forwards or backwards, its deltas merged and its texts shortened on demand. */
type LogWindow = Pick<ReadOptions, 'after' | 'before' | 'limit' | 'step' | 'types'>

/**
 * Reads a window in batches. With `before` and `limit`, but without `after`, it has the last entries before that one. A cursor inside merged deltas
 * gets the whole merged deltas.
 */
async function* readWindow(log: Log, run: string, window: LogWindow): AsyncGenerator<Entry[], void, void> {
  const { after, before, limit, ...choice } = window
  if (after === undefined && before !== undefined && limit !== undefined) {
    yield await readBackwards(log, run, { ...choice, before, limit })
    return
  }
  try {
    yield* log.read(run, window)
  } catch (error) {
    // Thrown before the first batch, if at all.
    if (!isCompacted(error)) throw error
    yield* readThrough(log, run, window)
  }
}

async function readBackwards(
  log: Log,
  run: string,
  { before, limit, ...choice }: LogWindow & { before: number; limit: number },
): Promise<Entry[]> {
  let found: Entry[] = []
  let end = before
  // Without a step, types and gaps the first round finds all.
  for (let size = limit; end > 1 && found.length < limit; size *= 2) {
    const after = Math.max(0, end - 1 - size)
    const page: Entry[] = []
    try {
      for await (const batch of log.read(run, { ...choice, after, before: end })) page.push(...batch)
    } catch (error) {
      if (!isCompacted(error)) throw error
      found = []
      for await (const batch of log.read(run, { ...choice, before })) found = [...found, ...batch].slice(-limit)
      return found
    }
    found = [...page, ...found]
    end = after + 1
  }
  return found.slice(-limit)
}

/** Reads the entries after a cursor inside merged deltas, from the start of the log. A compacted log is short. */
async function* readThrough(log: Log, run: string, { after = 0, limit = Infinity, ...rest }: LogWindow) {
  let left = limit
  for await (const batch of log.read(run, rest)) {
    const later = batch.filter(({ seq }) => seq > after).slice(0, left)
    left -= later.length
    if (later.length > 0) yield later
    if (left === 0) return
  }
}

function isCompacted(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'compacted'
}

/** Maximum number of consecutive deltas that are merged at once. */
const mostMerged = 4096

/** Merges deltas like compaction: see `createCompaction`. The result does not depend on the batches. */
async function* mergeBatches(batches: AsyncIterable<Entry[]>): AsyncGenerator<Entry[], void, void> {
  const merge = createCompaction()
  let held: Entry[] = []
  for await (const batch of batches) {
    const merged: Entry[] = []
    for (const entry of batch) {
      held.push(entry)
      if (isDelta(entry) && held.length < mostMerged) continue
      merged.push(...merge(held))
      held = []
    }
    if (merged.length > 0) yield merged
  }
  if (held.length > 0) yield merge(held)
}

/** Fields that identify an entry's step, block or call are not shortened. */
const essential = /^(?:type|step|id|.*Id)$/u

/** Shortens every text in an entry to at most `chars` characters, the last of which is `…`. */
function cutEntry(entry: Entry, chars: number): Entry {
  const fields = Object.entries(entry).map(([key, value]) => [
    key,
    essential.test(key) ? value : cutValue(value, chars),
  ])
  return Object.fromEntries(fields) as Entry
}

function cutValue(value: unknown, chars: number): unknown {
  if (typeof value === 'string') return cutText(value, chars)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((each) => cutValue(each, chars))
  // Keeps own properties such as `__proto__`.
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, cutValue(each, chars)]))
}

function cutText(text: string, chars: number): string {
  if (text.length <= chars) return text
  const last = text.charCodeAt(chars - 2)
  // Does not split a surrogate pair.
  const end = last >= 0xd800 && last < 0xdc00 ? chars - 2 : chars - 1
  return `${text.slice(0, end)}…`
}
