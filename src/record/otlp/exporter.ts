/**
 * Sends the spans of runs that have ended to a collector. Its queue is the log: it keeps the ids of ended runs and, in a file, the
 * position up to which all were sent, so spans that a collector or a crash has missed are sent later. Ids of spans are derived from the run,
 * so sending one again changes nothing. Nothing here can disturb a run.
 *
 * Of the processes that share a store one sends at a time, all runs: the holder of the only place. The store keeps the position, from which
 * the next one goes on.
 */
import { anySignal } from '../../async/any-signal.ts'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { MillraceError, messageOf, wordsOf } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import type { Store } from '../../part/log.ts'
import type { Permit } from '../../part/limits.ts'
import { pause } from '../../async/pause.ts'
import { toOtlp } from './otlp-json.ts'
import type { OtlpSettings } from './settings.ts'
import { createSpanFold } from './span-fold.ts'
import type { Span } from './span.ts'

/** The dependencies of the span export. */
export interface ExporterOptions {
  settings: OtlpSettings
  serviceVersion?: string
  /** Where the position is kept, if the store does not keep it. Without it, runs that a restart cuts off from the collector are not sent. */
  file?: string | undefined
  log(line: string): void
  /** ms for which spans are collected before they are sent. Default 1000. */
  delay?: number
}

/** Most runs that wait. Beyond that, the log is read on only when some were sent. */
const mostWaiting = 10_000
const mostSpans = 512
/** Of the place and of the position that the store keeps. */
const name = 'otlp'
const requestTimeout = 10_000
const closeTimeout = 2000

/** The store. Closing it sends the remaining spans, for up to two seconds. */
export function exportSpans(inner: Store, options: ExporterOptions): Store {
  const { settings, serviceVersion, file, log, delay = 1000 } = options
  const leave = new AbortController()
  const giveUp = new AbortController()
  let waiting: { n: number; run: string }[] = []
  let seen: number | undefined
  let stored: number | undefined
  let failing = false
  let wake = Promise.withResolvers<void>()
  const { positions, limits } = inner
  const isShared = positions !== undefined && limits !== undefined
  const self = crypto.randomUUID()
  let place: Permit | undefined
  /** Ends when another process sends. */
  let turn = new AbortController()

  function onFailure(why: string): void {
    if (!failing) log(`traces cannot be sent to the collector: ${why}. They are sent later; runs are not affected.`)
    failing = true
  }

  async function readPosition(): Promise<number> {
    const last = await inner.log.position()
    if (isShared) return Math.min((await positions.get(name))?.position ?? last, last)
    if (file === undefined) return last
    const text = await readFile(file, 'utf8').catch(() => '')
    const { position } = parseJson(text || '{}') as { position?: unknown }
    // One beyond the end is that of a log which is gone.
    return typeof position === 'number' && position <= last ? position : last
  }

  async function keepPosition(): Promise<void> {
    const position = waiting[0] === undefined ? seen : waiting[0].n - 1
    if (position === undefined || position === stored) return
    if (isShared) await positions.keep(name, position, self)
    if (isShared || file === undefined) return void (stored = position)
    await writeFile(`${file}.tmp`, `${JSON.stringify({ position })}\n`, { mode: 0o600 })
    await rename(`${file}.tmp`, file)
    stored = position
  }

  /** Whether this process is the one that sends. */
  async function hasPlace(): Promise<boolean> {
    if (!isShared) return true
    place ??= await limits.occupy(name, 1)
    return place !== undefined
  }

  /** After an outage of the store, or a pause of this process, another one may send as well: the last one to take the place continues. */
  async function isOusted(): Promise<boolean> {
    const by = isShared ? (await positions.get(name))?.by : undefined
    if (by === undefined || by === self) return false
    turn.abort()
    turn = new AbortController()
    waiting = []
    seen = stored = undefined
    place?.leave()
    place = undefined
    return true
  }

  /** Notes the runs that have ended since the position. With a signal: then live, until it aborts. */
  async function note(signal?: AbortSignal): Promise<void> {
    if (seen === undefined) {
      if (!(await hasPlace())) return
      seen = await readPosition()
      // A crash before the first batch must not lose runs that have ended by then.
      await keepPosition()
    }
    const mine = turn.signal
    const until = signal && anySignal([signal, mine])
    for await (const changes of inner.log.changes({ after: seen, ...(until && { signal: until }) })) {
      if (mine.aborted) return
      for (const { n, run, entries } of changes) {
        if (entries.at(-1)?.type === 'run-end') waiting.push({ n, run })
        seen = n
      }
      if (waiting.length > 0) wake.resolve()
      while (until?.aborted === false && waiting.length >= mostWaiting) await pause(delay, until, { background: true })
    }
  }

  async function readSpans(run: string): Promise<Span[]> {
    const fold = createSpanFold({ content: settings.content })
    for await (const batch of inner.log.read(run)) {
      try {
        for (const entry of batch) fold.apply(entry)
      } catch (error) {
        // Programs may append entries with wrong fields: one run must not stop all others.
        log(`run ${run} has no traces: ${messageOf(error)}`)
        return []
      }
    }
    return fold.spans()
  }

  /** For a run that was deleted while it waited. */
  function noneIfDeleted(error: unknown): Span[] {
    if (error instanceof MillraceError && error.code === 'unknown-run') return []
    throw error
  }

  /** Sends the waiting spans. Returns early when nothing more can be sent. */
  async function flush(signal: AbortSignal): Promise<void> {
    while (waiting.length > 0 && !signal.aborted) {
      if (await isOusted()) return
      const spans: Span[] = []
      let runs = 0
      for (const { run } of waiting) {
        if (spans.length >= mostSpans) break
        spans.push(...(await readSpans(run).catch(noneIfDeleted)))
        runs++
      }
      for (let from = 0; from < spans.length; from += mostSpans) {
        const resource = { serviceName: settings.serviceName, ...(serviceVersion && { serviceVersion }) }
        const body = JSON.stringify(toOtlp(spans.slice(from, from + mostSpans), resource))
        let failed = false
        const fail = (why: string) => {
          failed = true
          onFailure(why)
        }
        const sent = await sendSpans(settings, body, { signal, timeout: requestTimeout, delay, onFailure: fail })
        if (sent === 'left') return
        if (failed === false) failing = false
      }
      waiting = waiting.slice(runs)
      await keepPosition()
    }
  }

  /** Never rejects. A store that fails is read again. */
  async function again(work: () => Promise<void>): Promise<void> {
    while (!leave.signal.aborted) {
      try {
        await work()
      } catch (error) {
        onFailure(messageOf(error))
      }
      await pause(delay, leave.signal, { background: true })
    }
  }

  const working = Promise.all([
    again(() => note(leave.signal)),
    again(async () => {
      if (waiting.length === 0) await Promise.race([wake.promise, aborted(leave.signal)])
      wake = Promise.withResolvers()
      await pause(delay, leave.signal, { background: true })
      await flush(anySignal([leave.signal, giveUp.signal]))
    }),
  ])

  async function finish(): Promise<void> {
    leave.abort()
    await working
    const timer = setTimeout(() => giveUp.abort(), closeTimeout)
    try {
      // The last entries may not have been noted yet.
      if (!isShared || place !== undefined) {
        await note()
        await flush(giveUp.signal)
        await keepPosition()
      }
    } catch (error) {
      onFailure(messageOf(error))
    }
    clearTimeout(timer)
    place?.leave()
  }

  return {
    ...inner,
    async close() {
      await finish()
      await inner.close()
    },
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

/* Sends a batch of spans to a collector, as often as it takes. */

/** `refused`: sending it again would not help. `left`: the signal has aborted before it was taken. */
type SendResult = 'taken' | 'refused' | 'left'

interface SendOptions {
  signal: AbortSignal
  /** ms for one request. */
  timeout: number
  /** ms before the second try; doubles with each. */
  delay?: number
  /** Called when a try has failed, with the reason. */
  onFailure: (why: string) => void
}

const longestDelay = 60_000
/** A retry delay of hours would lose data that is stored for less. */
const longestWish = 300_000
const retryable: ReadonlySet<number> = new Set([408, 429, 502, 503, 504])

/** Tries until the collector takes or refuses it, or the signal aborts. Never rejects. */
async function sendSpans({ url, headers }: OtlpSettings, body: string, options: SendOptions): Promise<SendResult> {
  const { signal, timeout, onFailure } = options
  for (let delay = options.delay ?? 1000; ; delay = Math.min(2 * delay, longestDelay)) {
    let wish: number | undefined
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body,
        // The headers may hold a key.
        redirect: 'error',
        signal: anySignal([signal, AbortSignal.timeout(timeout)]),
      })
      const text = await response.text()
      if (response.ok) {
        const why = rejection(text)
        if (why !== undefined) onFailure(why)
        return 'taken'
      }
      onFailure(`it answered HTTP ${response.status}`)
      if (!retryable.has(response.status)) return 'refused'
      wish = toDelay(response.headers.get('retry-after'))
    } catch (error) {
      if (signal.aborted) return 'left'
      onFailure(wordsOf((error as { cause?: unknown }).cause ?? error))
    }
    await pause(wish ?? delay * (0.5 + Math.random()), signal, { background: true })
    if (signal.aborted) return 'left'
  }
}

/** Seconds or a date. */
function toDelay(text: string | null): number | undefined {
  if (text === null) return undefined
  const ms = /^\d+$/u.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), longestWish) : undefined
}

/** The report of a collector that has accepted the request but rejected spans. */
function rejection(text: string): string | undefined {
  try {
    const { partialSuccess } = parseJson(text) as { partialSuccess?: { rejectedSpans?: unknown } }
    const count = Number(partialSuccess?.rejectedSpans ?? 0)
    return count > 0 ? `it has refused ${count} spans` : undefined
  } catch {
    return undefined
  }
}
