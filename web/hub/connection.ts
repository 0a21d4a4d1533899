/**
 * The one connection to the server. A change of what is wanted opens a new stream, and the old one is closed when the new one is open:
 * a run that is held is held all the time. What the old one sends meanwhile is not read, because the new one sends it again.
 */
import { createEventReader, type SizedEvent } from './live-events.ts'
import type { HubConnection } from './messages.ts'

export interface ConnectionOptions {
  fetch: typeof fetch
  /** The URL of the stream, with the last `seq` of each run. Asked for each time. */
  url(): string
  headers(): Record<string, string>
  onEvents(events: readonly SizedEvent[]): void
  onState(connection: HubConnection): void
}

export interface LiveConnection {
  /** Opens a new stream, now or in so many ms. */
  open(delay?: number): void
  close(): void
}

/** The server says something every 15 s. */
const silence = 45_000
const firstWait = 250
const longestWait = 16_000

export function createConnection({ fetch, url, headers, onEvents, onState }: ConnectionOptions): LiveConnection {
  /** The stream that counts, and those that are closed when it is open. */
  let current: AbortController | undefined
  let replaced: AbortController[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let dueAt = Infinity
  let failures = 0
  let isOpen = false

  function say(connection: HubConnection): void {
    isOpen = connection.state === 'open'
    onState(connection)
  }

  function open(delay = 0): void {
    const at = performance.now() + delay
    if (timer !== undefined && dueAt <= at) return
    clearTimeout(timer)
    dueAt = at
    timer = setTimeout(begin, delay)
  }

  function begin(): void {
    timer = undefined
    if (current !== undefined) replaced.push(current)
    current = new AbortController()
    if (!isOpen) say({ state: 'connecting' })
    void read(current)
  }

  function drop(): void {
    for (const stream of replaced) stream.abort()
    replaced = []
    current?.abort()
    current = undefined
  }

  async function read(own: AbortController): Promise<void> {
    let watch: ReturnType<typeof setTimeout> | undefined
    const rearm = () => {
      clearTimeout(watch)
      watch = setTimeout(() => failed(own), silence)
    }
    rearm()
    try {
      const response = await fetch(url(), {
        headers: { accept: 'text/event-stream', ...headers() },
        cache: 'no-store',
        signal: own.signal,
      })
      if (own !== current) return void response.body?.cancel()
      if (response.status === 401 || response.status === 403) {
        drop()
        return say({ state: 'unauthorized' })
      }
      if (!response.ok || response.body === null) return failed(own)
      for (const stream of replaced) stream.abort()
      replaced = []
      say({ state: 'open' })
      const next = createEventReader()
      const decoder = new TextDecoder()
      const reader = response.body.getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return failed(own)
        const events = next(decoder.decode(value, { stream: true }))
        // A newer stream sends the entries again; this one is open for the runs that it holds.
        if (own !== current) onEvents(events.filter(({ live }) => live.event !== 'entry'))
        else {
          failures = 0
          rearm()
          onEvents(events)
        }
      }
    } catch {
      failed(own)
    } finally {
      clearTimeout(watch)
    }
  }

  function failed(own: AbortController): void {
    if (own !== current) return
    drop()
    const wait = Math.min(longestWait, firstWait * 2 ** failures++) * (0.5 + Math.random() / 2)
    open(wait)
    say({ state: 'offline', retryAt: Date.now() + wait })
  }

  return {
    open,
    close() {
      clearTimeout(timer)
      timer = undefined
      drop()
      isOpen = false
    },
  }
}
