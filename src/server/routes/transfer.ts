/** `/api/runs/:id/export` and `/api/runs/import`: a run as a file, and a file as a run. */
import { answerResponse } from '../../answer/answer-response.ts'
import { fromPromises, type BodySource } from '../../answer/streamed-body.ts'
import { createImport } from '../../record/transfer/import.ts'
import { exportRun as exportLines } from '../../record/transfer/export.ts'
import { partsWire } from '../../wire/parts/parts.ts'
import type { HandlerContext } from '../handler.ts'
import { readPieces } from '../http/body.ts'
import { existingRun } from './existing-run.ts'

/** Recordings are longer than requests. */
const mostBytes = 256 * 1024 * 1024

export async function exportRun(context: HandlerContext, id: string): Promise<Response> {
  await existingRun(context, id)
  const lines = exportLines(context.runtime.store, id)
  const source: BodySource = {
    next: fromPromises(async () => (await lines.next()).value ?? undefined),
    cancel: () => void lines.return().catch(() => undefined),
  }
  const response = answerResponse(partsWire, id, { source })
  response.headers.set('content-disposition', `attachment; filename="${encodeURIComponent(id.toWellFormed())}.ndjson"`)
  return response
}

/** Body: a log as NDJSON. 201 for a new run, 200 if it is here already, 409 if another run has its id. */
export async function importRun({ runtime }: HandlerContext, request: Request): Promise<Response> {
  const importing = createImport({ name: 'The body', redactor: runtime.redactor })
  await readPieces(request, { type: 'application/x-ndjson', maxBytes: mostBytes }, importing.feed)
  const { id, isNew, row } = await importing.finish(runtime.store)
  const { agent, status, lastSeq } = row
  return Response.json({ id, agent, status, lastSeq }, { status: isNew ? 201 : 200 })
}
