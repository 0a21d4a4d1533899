/** `/api/runs/:id/export` and `/api/runs/import`: a run as a file, and a file as a run. */
import { visibleTo } from '../../access/decide.ts'
import { MillraceError } from '../../part/error.ts'
import { deliveryResponse } from '../../delivery/delivery-response.ts'
import { fromPromises, type BodySource } from '../../delivery/streamed-body.ts'
import { createImport } from '../../record/transfer/import.ts'
import { exportRun as exportLines } from '../../record/transfer/export.ts'
import { partsWire } from '../../wire/parts/parts.ts'
import { runUserOf } from '../../part/principal.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import { readPieces } from '../http/body.ts'
import { untilExpired } from '../http/until-expired.ts'
import { existingRun } from './existing-run.ts'

/** Recordings are longer than requests. */
const mostBytes = 256 * 1024 * 1024

export async function exportRun(context: RequestContext, id: string): Promise<Response> {
  await existingRun(context, id)
  const lines = exportLines(context.runtime.store, id, context.server.runtime.store.feedback)
  // An unreadable log is an error response, not a truncated file.
  let first: IteratorResult<string, void> | undefined = await lines.next()
  const next = async () => {
    const { value } = first ?? (await lines.next())
    first = undefined
    return value ?? undefined
  }
  const source: BodySource = {
    next: fromPromises(next),
    cancel: () => void lines.return().catch(() => undefined),
  }
  const response = deliveryResponse(partsWire, id, { source: untilExpired(source, context) })
  response.headers.set('content-disposition', `attachment; filename="${encodeURIComponent(id.toWellFormed())}.ndjson"`)
  return response
}

/** Maximum number of concurrent imports: each slows down all other requests, and needs a file. */
const mostAtOnce = 2
const running = new WeakMap<HandlerContext, number>()

/** Body: a log as NDJSON. 201 for a new run, 200 if it is here already, 409 if another run has its id, 429 for one too many. */
export async function importRun({ server: context, principal }: RequestContext, request: Request): Promise<Response> {
  const others = running.get(context) ?? 0
  if (others >= mostAtOnce) {
    const message = `The server takes ${mostAtOnce} recordings at the same time. Send this one again in a moment.`
    throw new MillraceError('too-many-imports', message, { status: 429, retryAfter: 5 })
  }
  running.set(context, others + 1)
  const { runtime } = context
  // An admin of all tenants brings back a backup as it was.
  const owner = Object.keys(visibleTo(principal)).length === 0 ? {} : { user: runUserOf(principal) ?? null }
  const importing = createImport({ name: 'The body', redactor: runtime.redactor, clean: runtime.redact, ...owner })
  try {
    await readPieces(request, { type: 'application/x-ndjson', maxBytes: mostBytes }, importing.feed)
    const { id, isNew, row } = await importing.finish(runtime.store)
    const { agent, status, lastSeq } = row
    return Response.json({ id, agent, status, lastSeq }, { status: isNew ? 201 : 200 })
  } finally {
    running.set(context, running.get(context)! - 1)
    await importing.close()
  }
}
