/** The routes for recorded runs: replay, fork, diff, export, import. Mounted where `/api/runs` is. */
import type { Hono } from 'hono'
import type { HandlerContext } from '../handler.ts'
import { diffOf } from './diff.ts'
import { forkRun, getPrograms } from './fork.ts'
import { exportRun, importRun } from './transfer.ts'
import { replayRun } from './replay.ts'

export function mountRecorded(app: Hono, context: HandlerContext): void {
  app.get('/api/runs/:id/replay', (c) => replayRun(context, c.req.param('id'), new URL(c.req.url)))
  app.get('/api/runs/:id/export', (c) => exportRun(context, c.req.param('id')))
  app.post('/api/runs/:id/fork', (c) => forkRun(context, c.req.raw, c.req.param('id')))
  app.get('/api/runs/:id/programs', (c) => getPrograms(context, c.req.param('id'), new URL(c.req.url)))
  app.get('/api/diff', (c) => diffOf(context, new URL(c.req.url)))
  app.post('/api/runs/import', (c) => importRun(context, c.req.raw))
}
