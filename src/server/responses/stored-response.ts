/** A response that is there already: as JSON, and as its events. */
import { readReplayState } from '../../delivery/run-reader.ts'
import { entryAt } from '../../fold/read-view.ts'
import type { EntryOf } from '../../part/entry.ts'
import { hasEnded, type RunRow } from '../../part/log.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { requestOf, type EchoedRequest, type ResponseObject } from '../../wire/responses/response-object.ts'
import { createResponsesAnswer, type ResponsesOptions } from '../../wire/responses/responses-answer.ts'
import type { RequestContext } from '../handler-context.ts'
import { unknownResponse } from './error.ts'

/** ms for which a response that was not to be stored can be read after its end. */
const keptAfterEnd = 10 * 60_000

const prefix = 'resp_'

/** The run that an id of a response names. */
export function runOfResponse(id: string): string | undefined {
  return id.startsWith(prefix) && id.length <= 512 ? id.slice(prefix.length) : undefined
}

export interface StoredResponse {
  row: RunRow
  start: EntryOf<'run-start'>
  /** Of its request. */
  echo: EchoedRequest
}

/** Throws `not-found`, also for a response that was not to be stored and has ended a while ago. */
export async function storedResponse(
  { runtime }: Pick<RequestContext, 'runtime'>,
  id: string,
): Promise<StoredResponse> {
  const run = runOfResponse(id)
  const row = run === undefined ? undefined : await runtime.store.runs.get(run)
  const start = row && (await entryAt(runtime.store.log, row.id, 1))
  if (row === undefined || start?.type !== 'run-start') throw unknownResponse(id)
  const echo = requestOf(start)
  const isForgotten =
    echo.store === false &&
    hasEnded(row.status) &&
    runtime.threadRule().now >= (row.endedAt ?? row.startedAt) + keptAfterEnd
  if (isForgotten) throw unknownResponse(id)
  return { row, start, echo }
}

/** The response as it is now, without attempts that a crash ended. */
export async function readResponse(
  { store, roles }: Runtime,
  { id, lastSeq, status }: RunRow,
  options: Partial<ResponsesOptions>,
): Promise<ResponseObject> {
  const { filter, resumedAt } = await readReplayState(store.log, id)
  const sink = { muted: false, send: ignore, prepare: () => ignore, end: ignore }
  const answer = createResponsesAnswer(sink, { resumedAt, ...(roles && { roles }) }, options)
  let hasBegun = false
  for await (const batch of store.log.read(id, { before: lastSeq + 1 })) {
    for (const entry of filter(batch)) {
      answer.apply(entry)
      hasBegun ||= entry.type === 'step-start'
    }
  }
  const response = answer.snapshot()
  if (response === undefined) throw unknownResponse(`${prefix}${id}`)
  if (status === 'aborted') return { ...response, status: 'cancelled', incomplete_details: null }
  if (response.status === 'in_progress' && !hasBegun) return { ...response, status: 'queued' }
  return response
}

function ignore(): void {}
