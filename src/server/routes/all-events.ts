/**
 * `GET /api/events`: the entries of all runs, over SSE, for monitors. Each frame is one entry with its run; its id is a position over all runs,
 * from which a client can continue. The reader is a cursor into the store's changes, so a slow monitor costs one batch.
 */
import { isDelta, mergeDeltas, type Entry } from '../../part/entry.ts'
import type { Change, Log, Store } from '../../part/log.ts'
import { partTypes } from '../../part/part.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { fromPromises, type BodySource } from '../../delivery/streamed-body.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import { untilExpired } from '../http/until-expired.ts'
import { createSeal, type Seal } from '../../part/sealed-text.ts'
import { threadNamed } from './existing-thread.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import { sseResponse, watchSilence } from '../http/sse-response.ts'

/** After change `n` and, in the next change, after the entry with this `seq`. */
interface Position {
  n: number
  seq: number
}

const parameters = { after: 200, types: 2000, run: 20_000, agent: 2000, thread: 20_000 }

/** How a client names positions: as numbers, or as words that it cannot read, because they count the changes of all runs. */
interface PositionNames {
  of(position: string): Promise<string> | string
  read(name: string): Promise<string | undefined> | string
}

/** Characters: two whole numbers with a point. */
const longestPosition = 33

const plain: PositionNames = { of: (position) => position, read: (name) => name }
const seals = new WeakMap<HandlerContext, Seal>()

function positionNames({ filter, server }: RequestContext): PositionNames {
  if (Object.keys(filter).length === 0) return plain
  const seal = seals.get(server) ?? createSeal(server.runtime.store.log, 'positions')
  seals.set(server, seal)
  return {
    // All have the same length, which would tell how many digits the position has.
    of: (position) => seal.seal(position.padStart(longestPosition)),
    read: async (name) => (name === '0' ? name : (await seal.open(name))?.trim()),
  }
}

export async function getAllEvents(context: RequestContext, request: Request, url: URL): Promise<Response> {
  const { store } = context.runtime
  const { after, types, run, agent, thread } = readQuery(url, parameters)
  const threads = thread && (await Promise.all(list(thread)!.map((each) => threadNamed(context, each))))
  const filter = createRunFilter(store, { runs: list(run), agents: list(agent), threads: threads || undefined })
  const wanted = readTypes(types)
  const names = positionNames(context)
  const start = await startOf(store.log, names, request.headers.get('last-event-id'), after)
  const source = createEventSource(context, { start, names }, async ({ n, run: id, entries }, { seq }) => {
    const later = seq === 0 ? entries : entries.filter((entry) => entry.seq > seq)
    const chosen = mergeDeltas(later.filter(wanted))
    if (chosen.length === 0 || !(await filter(id, entries))) return ''
    const frames = chosen.map(async (entry, i) =>
      frame(id, entry, await names.of(i === chosen.length - 1 ? `${n}` : `${n}.${entry.seq}`)),
    )
    return (await Promise.all(frames)).join('')
  })
  return sseResponse(untilExpired(source, context))
}

function frame(run: string, entry: Entry, id: string): string {
  return `id: ${id}\ndata: ${JSON.stringify({ run, ...entry })}\n\n`
}

function list(text: string | undefined): string[] | undefined {
  return text?.split(',')
}

/** Without a list: all types except deltas, which would be most of a monitor's bytes. */
function readTypes(listed: string | undefined): (entry: Entry) => boolean {
  if (listed === undefined) return (entry) => !isDelta(entry) && entry.type !== 'raw'
  const types = new Set(listed.split(','))
  for (const type of types) {
    if (partTypes.includes(type)) continue
    throw bad('types', `a list of part types, and "${type}" is not one${didYouMean(type, partTypes)}`)
  }
  return ({ type }) => types.has(type)
}

/** From now on, unless the client names a position. */
async function startOf(
  log: Log,
  names: PositionNames,
  lastEventId: string | null,
  after: string | undefined,
): Promise<Position> {
  const last = await log.position()
  const name = lastEventId ?? after
  if (name === undefined) return { n: last, seq: 0 }
  const given = await names.read(name)
  if (given === undefined) {
    if (lastEventId !== null) return { n: last, seq: 0 }
    throw bad('after', 'a position: the id of an event')
  }
  const [n = '', seq = '0', ...more] = given.split('.')
  if (more.length > 0) throw bad('after', 'a position: the id of an event')
  const position = {
    n: wholeNumber(n, 'after', 0, Number.MAX_SAFE_INTEGER),
    seq: wholeNumber(seq, 'after', 0, 2 ** 53),
  }
  if (position.n > last) {
    // A reconnecting `EventSource` cannot correct itself: the log is a new one, of which it has nothing.
    if (lastEventId !== null) return { n: 0, seq: 0 }
    throw bad('after', `at most ${last}, the position of the last event`)
  }
  return position.seq === 0 ? position : { n: position.n - 1, seq: position.seq }
}

type Encode = (change: Change, after: { seq: number }) => Promise<string>

function createEventSource(
  { runtime, keepAliveMs, onError }: HandlerContext,
  { start, names }: { start: Position; names: PositionNames },
  encode: Encode,
): BodySource {
  const leave = new AbortController()
  const { signal } = leave
  const changes = runtime.store.log.changes({ after: start.n, signal })[Symbol.asyncIterator]()
  let position = start.n
  let { seq } = start
  let isFirst = true

  /** An id without data is not an event, but moves the client's position: unwanted entries need not be read again. */
  async function keepAlive(): Promise<string> {
    return `: keep-alive\n${seq === 0 ? `id: ${await names.of(`${position}`)}\n` : ''}\n`
  }

  async function read(): Promise<string | undefined> {
    for (;;) {
      const { done, value } = await changes.next()
      if (done) return undefined
      let text = ''
      for (const change of value) {
        // The change at the client's position may have been deleted since.
        text += await encode(change, { seq: change.n === start.n + 1 ? seq : 0 })
        position = change.n
        seq = 0
      }
      if (text !== '') return text
    }
  }

  function stop(): void {
    silence.stop()
    leave.abort()
  }

  const silence = watchSilence(keepAliveMs, () => {
    keepAlive().then((text) => source.sendKeepAlive?.(text), onError)
  })
  const source: BodySource = {
    next: fromPromises(async () => {
      if (isFirst) {
        isFirst = false
        return keepAlive()
      }
      try {
        const text = await read()
        silence.wrote()
        if (text === undefined) stop()
        return text
      } catch (error) {
        stop()
        onError(error)
        throw error
      }
    }),
    cancel: stop,
  }
  return source
}

/** Selects runs by id, agent and thread, as their changes come. Runs need not exist yet. */
interface RunChoice {
  runs: readonly string[] | undefined
  agents: readonly string[] | undefined
  threads: readonly string[] | undefined
}

/** Maximum number of cached decisions. Others are looked up again. */
const most = 10_000

function createRunFilter({ runs }: Pick<Store, 'runs'>, choice: RunChoice) {
  const [wanted, agents, threads] = [choice.runs, choice.agents, choice.threads].map((list) => list && new Set(list))
  const known = new Map<string, boolean>()

  function fits({ agent, threadId }: { agent: string; threadId: string }): boolean {
    return agents?.has(agent) !== false && threads?.has(threadId) !== false
  }

  /** `entries`: one batch, of which the first may be the run's first. */
  return async (run: string, entries: readonly Entry[]): Promise<boolean> => {
    if (wanted?.has(run) === false) return false
    if (agents === undefined && threads === undefined) return true
    let answer = known.get(run)
    if (answer === undefined) {
      const [first] = entries
      const row = first?.type === 'run-start' ? first : await runs.get(run)
      answer = row !== undefined && fits(row)
      if (known.size >= most) known.delete(known.keys().next().value!)
      known.set(run, answer)
    }
    return answer
  }
}
