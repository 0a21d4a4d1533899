/** What monitors ask: events of all runs, and metrics for Prometheus. */
import type { Hono } from 'hono'
import { gauge } from '../../record/metrics/families.ts'
import { createRunMetrics } from '../../record/metrics/run-metrics.ts'
import type { HandlerContext } from '../handler.ts'
import { getAllEvents } from './all-events.ts'
import { getStats } from './stats.ts'

export function mountMonitoring(app: Hono, context: HandlerContext): void {
  const { runtime } = context
  const metrics = createRunMetrics(runtime.store)
  app.get('/api/events', (c) => getAllEvents(context, c.req.raw, new URL(c.req.url)))
  app.get('/api/stats', (c) => getStats(context, new URL(c.req.url)))
  app.get('/metrics', async () => {
    const text =
      (await metrics.read()) +
      gauge('millrace_active_runs', 'Runs of this process.', runtime.active) +
      (await context.metrics()) +
      memory()
    return new Response(text, { headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } })
  })
}

/** Nothing where there is no Node. */
function memory(): string {
  const used = globalThis.process?.memoryUsage?.()
  if (used === undefined) return ''
  return (
    gauge('process_resident_memory_bytes', 'Resident memory.', used.rss) +
    gauge('nodejs_heap_size_used_bytes', 'Used heap of V8.', used.heapUsed)
  )
}
