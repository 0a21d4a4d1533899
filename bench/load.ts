/** The clients of the benchmark, in one process: they ask, count every delta, and take no stream for whole that is not. */
import { answerCalls, ownCpu } from './calls.ts'
import { createScanner, nowMicros } from './deltas.ts'
import { fetchText, openStream } from './http-stream.ts'
import { glance, spin } from './steady.ts'

export interface Target {
  url: string
  path: string
  body: unknown
  headers?: Record<string, string>
  /** What the protocol has before and with the `~` of a delta. */
  mark: string
  /** What its terminal frame holds; absent where only the end of the transfer tells. */
  end?: string | undefined
  /** The answer to the request names the run (`id`), whose events are read here. */
  follow?: string
}

interface Reading {
  count(): number
  done: Promise<void>
  leave(): void
}

const active = new Set<Reading>()
/** Deltas that have come from each server. */
const heard: Record<string, number> = {}

/** Asks and reads; `done` rejects unless all deltas came in order, then the terminal frame, then the end of the transfer. */
async function begin(target: Target, stamped: boolean, onDelta?: (sentAt: number) => void): Promise<Reading> {
  const { url, path, headers = {}, mark, end, follow } = target
  const scanner = createScanner(mark, stamped, onDelta)
  const post = { url: url + path, method: 'POST' as const, headers, body: JSON.stringify(target.body) }
  let last: Buffer = Buffer.alloc(0)
  let beforeLast = last
  const onPayload = (payload: Buffer) => {
    const before = scanner.count
    scanner.push(payload)
    heard[url] = (heard[url] ?? 0) + scanner.count - before
    beforeLast = last
    last = payload
  }
  const sse = { accept: 'text/event-stream' }
  let request: Parameters<typeof openStream>[0] = post
  if (follow !== undefined) {
    const { id } = JSON.parse(await fetchText(post)) as { id: string }
    request = { url: url + follow.replace(':id', id), headers: { ...headers, ...sse } }
  }
  const opened = openStream(request, onPayload)
  const reading: Reading = { count: () => scanner.count, done: whole(), leave: opened.leave }
  async function whole(): Promise<void> {
    try {
      await opened.done
      if (end === undefined || Buffer.concat([beforeLast, last]).includes(end)) return
      throw new Error(`the answer ended without its last frame (${end})`)
    } finally {
      active.delete(reading)
    }
  }
  reading.done.catch(() => undefined)
  active.add(reading)
  return reading
}

/** So many at a time, one after the other, until the time is over; each is read to its end. */
async function throughput(args: { target: Target; streams: number; deltas: number; seconds: number }) {
  const { target, streams, deltas, seconds } = args
  const began = nowMicros()
  const until = began + seconds * 1e6
  let answers = 0
  async function slot(): Promise<void> {
    do {
      const reading = await begin(target, false)
      await reading.done
      if (reading.count() !== deltas) throw new Error(`an answer had ${reading.count()} of ${deltas} deltas`)
      answers++
    } while (nowMicros() < until)
  }
  await Promise.all(Array.from({ length: streams }, slot))
  return { answers, seconds: (nowMicros() - began) / 1e6 }
}

let held: Reading[] = []

/** Asks once; tells when, and when the first delta was sent by the model server and came here, in µs. */
async function first({ target }: { target: Target }) {
  const came = Promise.withResolvers<{ sent: number; at: number }>()
  const asked = nowMicros()
  const reading = await begin(target, true, (sent) => came.resolve({ sent, at: nowMicros() }))
  held = [reading]
  reading.done.then(() => came.reject(new Error('the answer had no delta')), came.reject)
  const { sent, at } = await came.promise
  return { asked, sent, at }
}

let lateness: number[] = []

/** Opens streams, so many at a time, and resolves when each has had a delta. */
async function open({ target, streams, atOnce }: { target: Target; streams: number; atOnce: number }) {
  held = []
  let begun = 0
  async function slot(): Promise<void> {
    while (begun++ < streams) {
      const spoke = Promise.withResolvers<void>()
      const reading = await begin(target, true, (sent) => {
        spoke.resolve()
        lateness.push(nowMicros() - sent)
      })
      held.push(reading)
      reading.done.then(() => spoke.reject(new Error('the answer had no delta')), spoke.reject)
      await spoke.promise
    }
  }
  await Promise.all(Array.from({ length: atOnce }, slot))
}

/** Forgets what came before, and tells after this time how late deltas were, in ms. */
async function hold({ seconds }: { seconds: number }) {
  lateness = []
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const sorted = Float64Array.from(lateness).toSorted()
  const at = (share: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) / 1000
  return { deltas: sorted.length, p50: at(0.5), p99: at(0.99), worst: at(1) }
}

/** Waits for the end of all that are open; the model server has been told to finish them. */
async function drain() {
  await Promise.all(held.map(({ done }) => done))
  return { deltas: held.reduce((sum, reading) => sum + reading.count(), 0) }
}

/** Asks, reads some deltas, and leaves: when, in µs. */
async function leave({ target, after }: { target: Target; after: number }) {
  const heard = Promise.withResolvers<void>()
  let count = 0
  const reading = await begin(target, true, () => ++count === after && heard.resolve())
  reading.done.catch(heard.reject)
  await heard.promise
  const at = nowMicros()
  reading.leave()
  return { at }
}

function reset(): void {
  for (const reading of active) reading.leave()
  held = []
}

answerCalls({ throughput, first, open, hold, drain, leave, reset, spin, glance, heard: () => heard, cpu: ownCpu })
