/** `POST /api/threads/:id/title`: what people call a conversation. */
import { decide } from '../../access/decide.ts'
import { notAllowed } from '../../access/scope-store.ts'
import { MillraceError } from '../../part/error.ts'
import { timeOf } from '../../part/log.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { ownValue } from '../../part/own-value.ts'
import { threadOwner, type OwnerFilter } from '../../part/principal.ts'
import { longestTitle } from '../../part/thread-title.ts'
import { readThread } from '../../record/threads/list-threads.ts'
import type { RequestContext } from '../handler-context.ts'
import { readJson } from '../http/body.ts'
import { bad } from '../http/query.ts'
import type { Routes } from '../http/routes.ts'
import { shownThread, threadNamed } from './existing-thread.ts'

export function mountThreadTitle(routes: Routes): void {
  routes.post('/api/threads/:id/title', 'runs.rename', (context, request) =>
    putTitle(context, request.raw, request.param('id')),
  )
}

/** Body: `{title}`. An empty one takes the title back. Answers with what the conversation is called now. */
async function putTitle(context: RequestContext, request: Request, name: string): Promise<Response> {
  const { principal, server, runtime, filter } = context
  const given = ownValue(await readJson(request, context.maxBodyBytes), 'title')
  if (typeof given !== 'string' || given.length > longestTitle) {
    throw bad('title', `a text of at most ${longestTitle} characters; an empty one takes it back`)
  }
  const thread = await threadNamed(context, name)
  const owner = await ownerOf(context, thread)
  if (owner === undefined) throw unknown(name)
  if (decide(principal, 'runs.rename', owner) !== 'allow') throw notAllowed('runs.rename')
  const { store } = server.runtime
  if (store.titles === undefined) {
    throw new MillraceError('bad-request', 'This store keeps no titles of threads.', { status: 400 })
  }
  const { id: user, tenant = '' } = principal
  const row = { thread, title: runtime.redact(given), user, tenant, time: timeOf(store) }
  if (!(await store.titles.put(row))) throw unknown(name)
  const title = (await readThread(store, thread, server.runtime.threadRule(), filter))?.title
  server.renames.tell({ thread, owner, title })
  return Response.json({ id: shownThread(context, thread), ...omitUndefined({ title }) })
}

/** Whose a thread is that the caller sees. A fork of somebody else may be in it: the id says who has started it. */
async function ownerOf({ runtime }: RequestContext, threadId: string): Promise<OwnerFilter | undefined> {
  const [run] = await runtime.store.runs.list({ threadId, limit: 1 })
  if (run === undefined) return undefined
  const owner = threadOwner(threadId)
  return omitUndefined(owner === undefined ? run : { owner: owner.id, tenant: owner.tenant })
}

function unknown(name: string): MillraceError {
  return new MillraceError('unknown-thread', `There is no thread ${name}.`)
}
