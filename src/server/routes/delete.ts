/** `DELETE /api/runs/:id` and `DELETE /api/threads/:id`: deletes ended runs with all their data. */
import { deleteRun, deleteThread } from '../../record/delete.ts'
import { createRest } from '../../record/housekeeping.ts'
import type { Routes } from '../http/routes.ts'
import { threadNamed } from './existing-thread.ts'

export function mountDelete(routes: Routes): void {
  const paced = () => ({ rest: createRest(0.5) })
  routes.delete('/api/runs/:id', 'runs.delete', async ({ runtime }, request) =>
    Response.json(await deleteRun(runtime.store, request.param('id'), paced())),
  )
  routes.delete('/api/threads/:id', 'runs.delete', async (context, request) => {
    const threadId = await threadNamed(context, request.param('id'))
    return Response.json(await deleteThread(context.runtime.store, threadId, paced()))
  })
}
