/** The load generator: all clients in one process. It counts every delta and rejects incomplete streams. */
import { answerCalls, ownCpu } from './calls.ts'
import { createScanner, nowMicros } from './deltas.ts'
import { fetchText, openStream, type HttpRequest, type Opened } from './http-stream.ts'
import { closeSockets, openSocketRun } from './socket-stream.ts'
import { spin } from './steady.ts'

export interface Target {
  url: string
  path: string
  /** `{n}` in its texts is the number of the request, for protocols that want ids. Undefined: a GET. */
  body: unknown
  headers?: Record<string, string>
  /** The text before a delta, including its `~`. */
  mark: string
  /** Text of the terminal frame. Absent if only the end of the transfer marks the end. */
  end?: string | undefined
  /** The response contains the id of the run (`id`); its events are read from this path. */
  follow?: string
  /** The body is emitted over Socket.IO, on a connection that is kept. */
  socket?: boolean
}

interface Reading {
  count(): number
  done: Promise<void>
  leave(): void
}

const active = new Set<Reading>()
let requests = 0
/** Deltas received from each server. */
const heard: Record<string, number> = {}

/** Sends a request. `done` rejects unless all deltas arrive in order, followed by the terminal frame and the end of the transfer. */
async function begin(target: Target, stamped: boolean, onDelta?: (sentAt: number) => void): Promise<Reading> {
  const { url, mark, end } = target
  const scanner = createScanner(mark, stamped, onDelta)
  let last: Buffer = Buffer.alloc(0)
  let beforeLast = last
  const onPayload = (payload: Buffer) => {
    const before = scanner.count
    scanner.push(payload)
    heard[url] = (heard[url] ?? 0) + scanner.count - before
    beforeLast = last
    last = payload
  }
  const opened = await send(target, onPayload)
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

async function send(target: Target, onPayload: (payload: Buffer) => void): Promise<Opened> {
  const { url, path, headers = {}, follow, socket } = target
  if (target.body === undefined) return openStream({ url: url + path, headers }, onPayload)
  if (socket === true) return openSocketRun({ url, message: bodyOf(target) }, onPayload)
  if (follow === undefined) return openStream(postOf(target), onPayload)
  const { id } = await start({ target })
  const sse = { ...headers, accept: 'text/event-stream' }
  return openStream({ url: url + follow.replace(':id', id), headers: sse }, onPayload)
}

const bodyOf = (target: Target) => JSON.stringify(target.body).replaceAll('{n}', String(++requests))

function postOf(target: Target): HttpRequest {
  const { url, path, headers = {} } = target
  return { url: url + path, method: 'POST', headers, body: bodyOf(target) }
}

/** Starts a run whose events are read apart from it. */
async function start({ target }: { target: Target }) {
  return JSON.parse(await fetchText(postOf(target))) as { id: string }
}

/** Keeps `streams` streams running until the time is up. Each is read to its end. */
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

/** Sends one request. Returns when it was sent, and when the model server sent the first delta and it arrived, in µs. */
async function first({ target }: { target: Target }) {
  const came = Promise.withResolvers<{ sent: number; at: number }>()
  const asked = nowMicros()
  const reading = await begin(target, true, (sent) => came.resolve({ sent, at: nowMicros() }))
  held = [reading]
  reading.done.then(() => came.reject(new Error('the answer had no delta')), came.reject)
  const { sent, at } = await came.promise
  return { asked, sent, at }
}

/** Sends a request and reads until `until` deltas have come, or the whole answer. Returns ms until the first byte and until then. */
async function timed({ target, until }: { target: Target; until?: number }) {
  const { url, path, headers = {}, mark } = target
  const method = target.body === undefined ? 'GET' : 'POST'
  const body = target.body === undefined ? '' : JSON.stringify(target.body)
  const enough = Promise.withResolvers<void>()
  const needle = Buffer.from(mark)
  let tail: Buffer = Buffer.alloc(0)
  const began = nowMicros()
  let first = 0
  let bytes = 0
  let seen = 0
  const opened = openStream({ url: url + path, method, headers, body }, (payload) => {
    if (first === 0) first = nowMicros()
    bytes += payload.length
    // A mark may be cut in two.
    const data = Buffer.concat([tail, payload])
    for (let at = data.indexOf(needle); at !== -1; at = data.indexOf(needle, at + 1)) seen++
    tail = Buffer.from(data.subarray(Math.max(0, data.length - needle.length + 1)))
    if (until !== undefined && seen >= until) enough.resolve()
  })
  await (until === undefined ? opened.done : Promise.race([enough.promise, opened.done]))
  const at = nowMicros()
  opened.leave()
  return { first: (first - began) / 1000, whole: (at - began) / 1000, bytes, seen }
}

let lateness: number[] = []

/** Opens streams, `atOnce` at a time, and resolves when each has received a delta. */
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

/** Measures the latency of deltas during this time, in ms. */
async function hold({ seconds }: { seconds: number }) {
  lateness = []
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const sorted = Float64Array.from(lateness).toSorted()
  const at = (share: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) / 1000
  return { deltas: sorted.length, p50: at(0.5), p99: at(0.99), worst: at(1) }
}

/** Waits for all open streams to end, after the model server was told to finish them. */
async function drain() {
  await Promise.all(held.map(({ done }) => done))
  return { deltas: held.reduce((sum, reading) => sum + reading.count(), 0) }
}

/** Sends a request, reads some deltas, and disconnects. Returns when, in µs. */
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
  closeSockets()
  held = []
}

answerCalls({
  throughput,
  first,
  start,
  timed,
  open,
  hold,
  drain,
  leave,
  reset,
  spin,
  heard: () => heard,
  cpu: ownCpu,
})
