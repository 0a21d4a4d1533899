/** The routes of the server, in groups. A group has its own file; a line here mounts it. */
import type { Hono } from 'hono'
import { textWire } from '../../wire/text/text.ts'
import { uiWire } from '../../wire/ui/ui.ts'
import type { HandlerContext } from '../handler.ts'
import { mountAgUi } from './ag-ui.ts'
import { getChatStream, postChat } from './chat.ts'
import { mountDelete } from './delete.ts'
import { getEvents } from './events.ts'
import { mountLive } from './live.ts'
import { mountMonitoring } from './monitoring.ts'
import { mountOpenAi } from '../openai/routes.ts'
import { mountOutline } from './outline.ts'
import { mountRecorded } from './recorded.ts'
import { answerRequest, listRequests, listRuns, showRun, startRun, stopRun } from './runs.ts'
import { mountSearch } from './search.ts'
import { mountThreads } from './threads.ts'
import { mountUpkeep } from './upkeep.ts'

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

/** For those who talk with agents. */
export const talkRoutes: readonly Mount[] = [mountChat, mountOpenAi, mountAgUi]

/** They give access to all runs. */
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
