/** The routes of the server, in groups. A group has its own file; a line here mounts it. */
import { textWire } from '../../wire/text/text.ts'
import { uiWire } from '../../wire/ui/ui.ts'
import type { HandlerContext } from '../handler-context.ts'
import type { Routes } from '../http/routes.ts'
import { mountAgUi } from './ag-ui.ts'
import { getChatStream, postChat } from './chat.ts'
import { mountAudit } from './audit.ts'
import { mountDelete } from './delete.ts'
import { mountFeedback } from './feedback.ts'
import { getEvents } from './events.ts'
import { mountKeys } from './keys.ts'
import { mountRunMessages } from './run-messages.ts'
import { mountLive } from './live.ts'
import { mountMcp } from '../mcp/endpoint.ts'
import { mountMcpConnect } from './mcp-connect.ts'
import { mountMessages } from '../messages/routes.ts'
import { mountOpenAi } from '../openai/routes.ts'
import { mountResponses } from '../responses/routes.ts'
import { mountOutline } from './outline.ts'
import { answerRequest, listRequests, listRuns, showRun, startRun, stopRun } from './runs.ts'
import { mountSearch } from './search.ts'
import { mountTests } from './tests.ts'
import { mountThreadTitle } from './thread-title.ts'
import { mountThreads } from './threads.ts'
import { mountUpkeep } from './upkeep.ts'
import { mountUsage } from './usage.ts'
import { diffOf } from './diff.ts'
import { forkRun, getPrograms } from './fork.ts'
import { exportRun, importRun } from './transfer.ts'
import { replayRun } from './replay.ts'
import { gauge } from '../../record/metrics/families.ts'
import { createRunMetrics } from '../../record/metrics/run-metrics.ts'
import { getAllEvents } from './all-events.ts'
import { getStats } from './stats.ts'

/** `server`: for what all requests share. */
type Mount = (routes: Routes, server: HandlerContext) => void

function mountChat(routes: Routes): void {
  routes.post('/api/chat', 'runs.start', (context, { raw }) => postChat(context, raw, uiWire))
  routes.post('/api/beddel/chat', 'runs.start', (context, { raw }) => postChat(context, raw, textWire))
  routes.get('/api/chat/:id/stream', 'runs.read', (context, request) =>
    getChatStream(context, request.raw, request.param('id')),
  )
}

function mountRuns(routes: Routes): void {
  routes.get('/api/runs', 'runs.read', (context, { url }) => listRuns(context, new URL(url)))
  routes.post('/api/runs', 'runs.start', (context, { raw }) => startRun(context, raw))
  routes.get('/api/runs/:id', 'runs.read', (context, request) =>
    showRun(context, request.param('id'), new URL(request.url)),
  )
  routes.get('/api/runs/:id/events', 'runs.read', (context, request) =>
    getEvents(context, request.raw, request.param('id'), new URL(request.url)),
  )
  routes.post('/api/runs/:id/stop', 'runs.stop', (context, request) =>
    stopRun(context, request.raw, request.param('id')),
  )
  routes.get('/api/runs/:id/requests', 'runs.read', (context, request) => listRequests(context, request.param('id')))
  routes.post('/api/runs/:id/requests/:requestId', 'runs.answer', (context, request) =>
    answerRequest(context, request.raw, request.param('id'), request.param('requestId')),
  )
}

/** For users of agents. */
export const talkRoutes: readonly Mount[] = [mountChat, mountOpenAi, mountResponses, mountMessages, mountAgUi, mountMcp]

/** Routes with access to all runs. */
export const runRoutes: readonly Mount[] = [
  mountRecorded,
  mountRuns,
  mountRunMessages,
  mountOutline,
  mountMonitoring,
  mountLive,
  mountThreads,
  mountThreadTitle,
  mountSearch,
  mountUpkeep,
  mountDelete,
  mountFeedback,
  mountTests,
  mountAudit,
  mountKeys,
  mountMcpConnect,
  (routes, server) => mountUsage(routes, server, server.quotas),
]

/** The routes for recorded runs: replay, fork, diff, export, import. Mounted where `/api/runs` is. */
function mountRecorded(routes: Routes): void {
  routes.get('/api/runs/:id/replay', 'runs.read', (context, request) =>
    replayRun(context, request.param('id'), new URL(request.url)),
  )
  routes.get('/api/runs/:id/export', 'runs.read', (context, request) => exportRun(context, request.param('id')))
  routes.post('/api/runs/:id/fork', 'runs.fork', (context, request) =>
    forkRun(context, request.raw, request.param('id')),
  )
  routes.get('/api/runs/:id/programs', 'runs.read', (context, request) =>
    getPrograms(context, request.param('id'), new URL(request.url)),
  )
  routes.get('/api/diff', 'runs.read', (context, { url }) => diffOf(context, new URL(url)))
  routes.post('/api/runs/import', 'runs.import', (context, { raw }) => importRun(context, raw))
}

/** For monitors: events of all runs, and metrics for Prometheus. */
function mountMonitoring(routes: Routes, server: HandlerContext): void {
  const { runtime } = server
  const metrics = createRunMetrics(runtime.store)
  routes.get('/api/events', 'runs.read', (context, { raw, url }) => getAllEvents(context, raw, new URL(url)))
  routes.get('/api/stats', 'stats', (context, { url }) => getStats(context, new URL(url)))
  routes.get('/metrics', 'metrics', async () => {
    const text =
      (await metrics.read()) +
      gauge('millrace_active_runs', 'Runs of this process.', runtime.active) +
      (await server.metrics()) +
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
