/** `GET /api/runs/:id/events`: the log of a run. It is followed live, or read as it stands, whole or a window of it. */
import { runIdHeader } from '../../answer/run-id-header.ts'
import { compact } from '../../part/compact.ts'
import type { Entry } from '../../part/entry.ts'
import { hasEnded } from '../../part/log.ts'
import { partTypes } from '../../part/part-types.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { checkCursor } from '../../fold/read-view.ts'
import { partsSseWire, partsWire } from '../../wire/parts/parts.ts'
import { answerResponse } from '../../answer/answer-response.ts'
import { openAnswer, type OpenAnswer } from '../../answer/open-answer.ts'
import { preferredType } from '../http/accept.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import type { HandlerContext } from '../handler.ts'
import { existingRun } from './existing-run.ts'
import { cutEntry, mergeBatches, readWindow, type LogWindow } from './log-window.ts'

const parameters = { after: 400, types: 2000, follow: 1, before: 20, limit: 20, merge: 1, step: 2000, cut: 20 }
/** They ask for a window. */
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
    const batches = readWindow(context.runtime.store.log, id, compact({ ...window, types }))
    return snapshot(id, merges ? mergeBatches(batches) : batches, cut)
  }
  const ended = hasEnded(status)
  if (ended) await checkCursor(context.runtime.store.log, id, after)
  const isRead = ended && after === lastSeq
  // The client has everything. 204 tells an EventSource not to reconnect.
  if (sse && isRead) return new Response(null, { status: 204, headers: { 'x-millrace-run-id': runIdHeader(id) } })
  if (isFollowed && !isRead) {
    const wire = sse ? partsSseWire : partsWire
    const options = compact({ types })
    const answer = await openAnswer(context, { runId: id, wire, options, from: after + 1 })
    // Whether a run that has ended can be read is known before anything is sent: its archive may be away.
    if (ended) await unlessItFails(answer)
    return answerResponse(wire, id, answer)
  }
  return snapshot(id, context.runtime.store.log.read(id, compact({ after, types })))
}

async function unlessItFails(answer: OpenAnswer<string>): Promise<void> {
  try {
    await answer.reader.peek()
  } catch (error) {
    answer.drop(true)
    throw error
  }
}

/** A cursor is a `seq`, because the address names the run. It may name the run as well: `<run>~<seq>`, as in `/api/live`. */
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

interface Shown {
  /** The first parameter that asks for a window. */
  name: string
  window: LogWindow
  merges: boolean
  cut: number | undefined
}

/** What a request asks for that only makes sense for a log as it stands. Undefined if it asks for nothing of that kind. */
function readShown(query: Query, { after, lastSeq }: { after: number; lastSeq: number }): Shown | undefined {
  const name = windowNames.find((each) => query[each] !== undefined)
  if (name === undefined) return undefined
  const number = (of: 'before' | 'limit' | 'cut', min: number, max: number) =>
    query[of] === undefined ? undefined : wholeNumber(query[of], of, min, max)
  const before = number('before', 1, Number.MAX_SAFE_INTEGER)
  const limit = number('limit', 1, 10_000)
  const cut = number('cut', 2, 1_000_000)
  if (before !== undefined && before <= after) throw bad('before', `greater than after, which is ${after}`)
  const window = compact({
    // The last entries before one are meant if only that one is named.
    after: before === undefined || query.after !== undefined ? after : undefined,
    // What is stored now: the run may go on.
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
