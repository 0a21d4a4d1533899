/** `/api/runs/:id/feedback`, `GET /api/feedback`: what people say of answers. */
import { decide } from '../../access/decide.ts'
import { notAllowed } from '../../access/scope-store.ts'
import { MillraceError } from '../../part/error.ts'
import { longestNote, verdicts, type Feedback, type FeedbackRow, type Verdict } from '../../part/feedback.ts'
import { timeOf, type RunRow } from '../../part/log.ts'
import { ownValue } from '../../part/own-value.ts'
import type { RequestContext } from '../handler-context.ts'
import { readJson } from '../http/body.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import type { Routes } from '../http/routes.ts'
import { threadNamed } from './existing-thread.ts'
import { existingRun, unknownRun } from './existing-run.ts'

export function mountFeedback(routes: Routes): void {
  routes.get('/api/feedback', 'runs.read', (context, { url }) => listFeedback(context, new URL(url)))
  routes.get('/api/runs/:id/feedback', 'runs.read', async (context, request) => {
    const { id } = await existingRun(context, request.param('id'))
    return shown({ rows: await storeOf(context).of(id) })
  })
  routes.post('/api/runs/:id/feedback', 'runs.judge', (context, request) =>
    putFeedback(context, request.raw, request.param('id')),
  )
  routes.delete('/api/runs/:id/feedback', 'runs.judge', async (context, request) => {
    const { id } = await judged(context, request.param('id'))
    return Response.json({ run: id, removed: await storeOf(context).remove({ run: id, ...personOf(context) }) })
  })
}

/** Body: `{verdict?, note?}`, one at least. Replaces what the caller has said of this run before. */
async function putFeedback(context: RequestContext, request: Request, id: string): Promise<Response> {
  const body = await readJson(request, context.maxBodyBytes)
  const { store } = context.server.runtime
  const verdict = readVerdict(ownValue(body, 'verdict') ?? undefined)
  const note = ownValue(body, 'note') ?? ''
  if (typeof note !== 'string' || note.length > longestNote) {
    throw bad('note', `a text of at most ${longestNote} characters`)
  }
  if (verdict === undefined && note.trim() === '') throw bad('verdict', '"up" or "down", or note a text')
  const row = await judged(context, id)
  const said = { ...personOf(context), ...(verdict && { verdict }), note: context.runtime.redact(note) }
  if (!(await storeOf(context).put({ run: row.id, time: timeOf(store), ...said }))) throw unknownRun(id)
  const mine = (await storeOf(context).of(row.id)).find(
    ({ user, tenant }) => user === said.user && tenant === said.tenant,
  )
  return Response.json(mine)
}

/** Rows that are looked at for one answer. */
const mostLookedAt = 5000

/** The newest first, each with the agent and the title of its run; `next` is the `before` of the next page, if there may be one. */
async function listFeedback(context: RequestContext, url: URL): Promise<Response> {
  const given = readQuery(url, { verdict: 8, agent: 256, thread: 2048, before: 20, limit: 10 })
  if (given.thread !== undefined) return listOfThread(context, given.thread)
  const verdict = readVerdict(given.verdict)
  const limit = given.limit === undefined ? 100 : wholeNumber(given.limit, 'limit', 1, 1000)
  let before = given.before === undefined ? undefined : wholeNumber(given.before, 'before', 1, Number.MAX_SAFE_INTEGER)
  const rows: (FeedbackRow & Pick<RunRow, 'agent' | 'title'>)[] = []
  for (let looked = 0; looked < mostLookedAt;) {
    const page = await storeOf(context).list({ verdict, before, limit })
    for (const row of page) {
      before = row.n
      // Runs of others are not there.
      const run = await context.runtime.store.runs.get(row.run)
      if (run === undefined || (given.agent !== undefined && run.agent !== given.agent)) continue
      rows.push({ ...row, agent: run.agent, ...(run.title !== undefined && { title: run.title }) })
      if (rows.length === limit) return shown({ rows, next: before })
    }
    looked += page.length
    if (page.length < limit) return shown({ rows })
  }
  return shown({ rows, next: before })
}

/** Runs of a conversation that are looked at. */
const mostOfThread = 1000

/** Of the newest runs of a conversation, all of it. */
async function listOfThread(context: RequestContext, thread: string): Promise<Response> {
  const threadId = await threadNamed(context, thread)
  const runs = await context.runtime.store.runs.list({ threadId, limit: mostOfThread })
  const feedback = storeOf(context)
  return shown({ rows: (await Promise.all(runs.map(({ id }) => feedback.of(id)))).flat() })
}

function shown(body: object): Response {
  return Response.json(body, { headers: { 'cache-control': 'no-store' } })
}

async function judged({ runtime, principal }: RequestContext, id: string): Promise<RunRow> {
  const row = await runtime.store.runs.get(id)
  if (row === undefined) throw unknownRun(id)
  if (decide(principal, 'runs.judge', row) !== 'allow') throw notAllowed('runs.judge')
  return row
}

/** The whole store: who may see what is decided here. */
function storeOf({ server }: RequestContext): Feedback {
  const { feedback } = server.runtime.store
  if (feedback !== undefined) return feedback
  throw new MillraceError('bad-request', 'This store keeps no feedback.', { status: 400 })
}

function personOf({ principal: { id, tenant = '' } }: RequestContext): { user: string; tenant: string } {
  return { user: id, tenant }
}

function readVerdict(value: unknown): Verdict | undefined {
  if (value === undefined) return undefined
  const known = verdicts.find((each) => each === value)
  if (known === undefined) throw bad('verdict', '"up" or "down"')
  return known
}
