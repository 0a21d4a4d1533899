/** Sends a batch of spans to a collector, as often as it takes. */
import { anySignal } from '../../async/any-signal.ts'
import { pause } from '../../async/pause.ts'
import { wordsOf } from '../../part/error-words.ts'
import { parseJson } from '../../part/json.ts'
import type { OtlpSettings } from './settings.ts'

/** `refused`: sending it again would not help. `left`: the signal has aborted before it was taken. */
export type Sent = 'taken' | 'refused' | 'left'

export interface SendOptions {
  signal: AbortSignal
  /** ms for one request. */
  timeout: number
  /** ms before the second try; doubles with each. */
  delay?: number
  /** Called when a try has failed, with the reason. */
  onFailure: (why: string) => void
}

const longestDelay = 60_000
/** A collector that asks for hours would lose what is stored for less. */
const longestWish = 300_000
const retryable: ReadonlySet<number> = new Set([408, 429, 502, 503, 504])

/** Tries until the collector takes or refuses it, or the signal aborts. Never rejects. */
export async function sendSpans({ url, headers }: OtlpSettings, body: string, options: SendOptions): Promise<Sent> {
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

/** What a collector that has taken the request says of spans that it has not. */
function rejection(text: string): string | undefined {
  try {
    const { partialSuccess } = parseJson(text) as { partialSuccess?: { rejectedSpans?: unknown } }
    const count = Number(partialSuccess?.rejectedSpans ?? 0)
    return count > 0 ? `it has refused ${count} spans` : undefined
  } catch {
    return undefined
  }
}
