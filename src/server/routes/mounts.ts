/** The routes of the server, in groups. A group has its own file; a line here mounts it. */
import type { Hono } from 'hono'
import { textWire } from '../../wire/text/text.ts'
import { uiWire } from '../../wire/ui/ui.ts'
import type { HandlerContext } from '../handler-context.ts'
import { mountAgUi } from './ag-ui.ts'
import { getChatStream, postChat } from './chat.ts'
import { mountDelete } from './delete.ts'
import { getEvents } from './events.ts'
import { mountLive } from './live.ts'
import { mountOpenAi } from '../openai/routes.ts'
import { mountOutline } from './outline.ts'
import { answerRequest, listRequests, listRuns, showRun, startRun, stopRun } from './runs.ts'
import { mountSearch } from './search.ts'
import { mountThreads } from './threads.ts'
import { mountUpkeep } from './upkeep.ts'
import { diffOf } from './diff.ts'
import { forkRun, getPrograms } from './fork.ts'
import { exportRun, importRun } from './transfer.ts'
import { replayRun } from './replay.ts'
import { gauge } from '../../record/metrics/families.ts'
import { createRunMetrics } from '../../record/metrics/run-metrics.ts'
import { getAllEvents } from './all-events.ts'
import { getStats } from './stats.ts'

type Mount = (app: Hono, context: HandlerContext) => void

function mountChat(app: Hono, context: HandlerContext): void {
  app.post('/api/chat', (c) => postChat(context, c.req.raw, uiWire))
  app.post('/api/beddel/chat', (c) => postChat(context, c.req.raw, textWire))
  app.get('/api/chat/:id/stream', (c) => getChatStream(context, c.req.raw, c.req.param('id')))
}

function mountRuns(app: Hono, context: HandlerContext): void {
  app.get('/api/runs', (c) => listRuns(context, new URL(c.req.url)))
  app.post('/api/runs', (c) => startRun(context, c.req.raw))
  app.get('/api/runs/:id', (c) => showRun(context, c.req.param('id'), new URL(c.req.url)))
  app.get('/api/runs/:id/events', (c) => getEvents(context, c.req.raw, c.req.param('id'), new URL(c.req.url)))
  app.post('/api/runs/:id/stop', (c) => stopRun(context, c.req.raw, c.req.param('id')))
  app.get('/api/runs/:id/requests', (c) => listRequests(context, c.req.param('id')))
  app.post('/api/runs/:id/requests/:requestId', (c) =>
    answerRequest(context, c.req.raw, c.req.param('id'), c.req.param('requestId')),
  )
}

/** For users of agents. */
export const talkRoutes: readonly Mount[] = [mountChat, mountOpenAi, mountAgUi]

/** Routes with access to all runs. */
export const runRoutes: readonly Mount[] = [
  mountRecorded,
  mountRuns,
  mountOutline,
  mountMonitoring,
  mountLive,
  mountThreads,
  mountSearch,
  mountUpkeep,
  mountDelete,
]

/** The routes for recorded runs: replay, fork, diff, export, import. Mounted where `/api/runs` is. */
function mountRecorded(app: Hono, context: HandlerContext): void {
  app.get('/api/runs/:id/replay', (c) => replayRun(context, c.req.param('id'), new URL(c.req.url)))
  app.get('/api/runs/:id/export', (c) => exportRun(context, c.req.param('id')))
  app.post('/api/runs/:id/fork', (c) => forkRun(context, c.req.raw, c.req.param('id')))
  app.get('/api/runs/:id/programs', (c) => getPrograms(context, c.req.param('id'), new URL(c.req.url)))
  app.get('/api/diff', (c) => diffOf(context, new URL(c.req.url)))
  app.post('/api/runs/import', (c) => importRun(context, c.req.raw))
}

/** For monitors: events of all runs, and metrics for Prometheus. */
function mountMonitoring(app: Hono, context: HandlerContext): void {
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

/** Empty without Node. */
function memory(): string {
  const used = globalThis.process?.memoryUsage?.()
  if (used === undefined) return ''
  return (
    gauge('process_resident_memory_bytes', 'Resident memory.', used.rss) +
    gauge('nodejs_heap_size_used_bytes', 'Used heap of V8.', used.heapUsed)
  )
}
