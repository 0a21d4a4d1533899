/** Reads a window of a run's log. */
import type { Entry } from '../../src/part/entry.ts'
import type { ReadWindow } from './run-feed.ts'

const most = 10_000

export function createWindowReader(options: {
  fetch: typeof fetch
  base: string
  headers(): Record<string, string>
}): ReadWindow {
  const { fetch, base, headers } = options
  return async (run, after, before) => {
    const path = `/api/runs/${encodeURIComponent(run)}/events?after=${after}&before=${before}&limit=${most}&merge=1`
    const response = await fetch(base + path, { headers: { accept: 'application/x-ndjson', ...headers() } })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status}`)
    const lines = text.split('\n').filter((line) => line !== '')
    return { entries: lines.map((line) => JSON.parse(line) as Entry), size: text.length }
  }
}
