/** `DELETE /api/runs/:id` and `DELETE /api/threads/:id`: deletes ended runs with all their data. */
import type { Hono } from 'hono'
import { deleteRun, deleteThread } from '../../record/delete.ts'
import { createRest } from '../../record/housekeeping.ts'
import type { HandlerContext } from '../handler-context.ts'

export function mountDelete(app: Hono, { runtime }: HandlerContext): void {
  const paced = () => ({ rest: createRest(0.5) })
  app.delete('/api/runs/:id', async ({ req }) =>
    Response.json(await deleteRun(runtime.store, req.param('id'), paced())),
  )
  app.delete('/api/threads/:id', async ({ req }) =>
    Response.json(await deleteThread(runtime.store, req.param('id'), paced())),
  )
}
