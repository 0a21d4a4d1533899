/** `POST /api/runs/:id/fork`: a new run that shares the log of another up to an entry and continues. */
import { runIdHeader } from '../../delivery/delivery-response.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { threadMark } from '../../part/principal.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { readPrograms } from '../../runtime/foreign-programs.ts'
import { fromClientMessages } from '../../wire/ui/ui-message.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import { readJson } from '../http/body.ts'
import { hashText } from '../http/key.ts'
import { readPipeline } from '../turn/own-pipeline.ts'
import { checkWaits, keepRunning } from '../http/wait-until.ts'
import { bad, readQuery } from '../http/query.ts'
import { consentIn } from './consent.ts'
import { existingRun } from './existing-run.ts'
import { shownThread } from './existing-thread.ts'
import { bindKey, idempotencyKey } from './idempotency.ts'
import { protocolOf } from './runs.ts'

const keys: ReadonlySet<string> = new Set(['at', 'input', 'agentId', 'pipeline', 'trust'])

/**
 * Body: `{at, input?, agentId?, pipeline?, trust?}`; `pipeline` is YAML, whose faults are reported with 422. 201 with the id and the thread of the
 * fork; 200 if the same request has made it before.
 */
export async function forkRun(context: RequestContext, request: Request, source: string): Promise<Response> {
  const { runtime, maxBodyBytes } = context
  const protocol = protocolOf(context, request)
  const waitUntil = context.waitUntil(request)
  checkWaits(waitUntil, 'POST /api/runs/:id/fork')
  const body = await readJson(request, maxBodyBytes)
  for (const key of Object.keys(body)) {
    if (keys.has(key)) continue
    throw new MillraceError('bad-input', `unknown key "${key.slice(0, 60)}"${didYouMean(key, keys)}`)
  }
  const row = await existingRun(context, source)
  const { at, input } = body
  if (typeof at !== 'number') throw bad('at', 'the seq of an entry')
  if (input !== undefined && (typeof input !== 'object' || input === null || Array.isArray(input)))
    throw bad('input', 'an object')
  if (body['pipeline'] === null) throw bad('pipeline', 'the YAML of an agent; name the agent with agentId for its file')
  const pipeline = readPipeline(context, request, body, { agent: row.agent }) ?? undefined
  const consent = consentIn(context, request, body)
  const key = idempotencyKey(request)
  let runId: string | undefined
  if (key !== undefined) {
    await bindKey(runtime.store.log, key, { fork: source, ...body })
    // The same request gets the same fork.
    runId = `run_${(await hashText(`fork\n${source}\n${key}${threadMark(context.principal)}`)).replaceAll(/[^\da-f]/gu, '').slice(0, 32)}`
  }
  const own = { pipeline, runId, input: input && withMessages(input) }
  const options = { at, protocol, ...consent, ...omitUndefined(own) }
  const run = await runtime.fork(source, options)
  keepRunning(waitUntil, run)
  return Response.json(
    { id: run.id, threadId: shownThread(context, run.threadId) },
    { status: run.joined ? 200 : 201, headers: { 'x-millrace-run-id': runIdHeader(run.id) } },
  )
}

/** Converts `messages` from the clients' form. */
function withMessages(input: object): Record<string, unknown> {
  const { messages } = input as { messages?: unknown }
  return messages === undefined ? { ...input } : { ...input, messages: fromClientMessages(messages) }
}

/**
 * `GET /api/runs/:id/programs`: the programs that a run recorded elsewhere would start if it continued. `at`: after which entry; default its last.
 * `own=0`: without its own text.
 */
export async function getPrograms(context: HandlerContext, id: string, url: URL): Promise<Response> {
  const { at, own = '1' } = readQuery(url, { at: 20, own: 1 })
  const row = await existingRun(context, id)
  const seq = at === undefined ? row.lastSeq : Number(at)
  if (!Number.isSafeInteger(seq) || seq < 1) throw bad('at', 'the seq of an entry')
  if (own !== '0' && own !== '1') throw bad('own', '0 or 1')
  const programs = await readPrograms(context.runtime.store.log, id, { before: seq + 1, ownText: own === '1' })
  return Response.json({ foreign: row.foreign !== undefined, programs })
}
