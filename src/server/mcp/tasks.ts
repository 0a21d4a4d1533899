/**
 * The extension `io.modelcontextprotocol/tasks`: a call that goes on after its response. A task is a view of its run and of nothing else: its id is the
 * run, sealed for the caller, and its state is the run's row. So every instance has every task, and a restart changes none.
 * https://modelcontextprotocol.github.io/ext-tasks/
 */
import { keptOf } from '../../fold/read-view.ts'
import { MillraceError, unexplained } from '../../part/error.ts'
import { hasEnded, timeOf, type RunRow } from '../../part/log.ts'
import { ownValue } from '../../part/own-value.ts'
import { checkWaits } from '../http/wait-until.ts'
import { protocol, toResult, type Asked } from './asked.ts'
import { readCallResult } from './call-result.ts'
import { declaresTasks, missingTasks } from './inbound.ts'
import { codes, invalidParams, isObject, type Fields } from './json-rpc.ts'
import { questionsOf, readAnswers, toInputRequests } from './questions.ts'
import { unknownTaskText } from './sealed-token.ts'
import { waitingFor } from './status.ts'
import { noteLeft, noteMisfit, readNotes } from './notes.ts'

/** ms */
const poll = { first: 500, firstMs: 10_000, later: 2000, waiting: 5000 }

/** The answer to a call whose run goes on. The run is in the store already, so every instance finds the task. */
export async function createTask(asked: Asked, run: string): Promise<Fields> {
  const { context, mcp, client } = asked
  const row = await context.runtime.store.runs.get(run)
  if (row === undefined) throw new MillraceError('unknown-run', `There is no run ${run}.`)
  if (hasEnded(row.status)) return toResult(client, await readCallResult(asked, run))
  const { keepsRunsMs } = mcp.options
  const expiresAt = keepsRunsMs === undefined ? undefined : row.startedAt + keepsRunsMs
  const taskId = await mcp.tokens.sealTask({ run, expiresAt }, context.principal)
  const { inputRequests: _, ...task } = await readTask(asked, taskId, row)
  // The questions come with the first poll.
  return toResult(client, { ...task, pollIntervalMs: poll.first }, 'task')
}

/** As `tasks/get` has it. */
export async function getTask(asked: Asked): Promise<Fields> {
  const { taskId, row } = await openTask(asked)
  return toResult(asked.client, await readTask(asked, taskId, row))
}

/** Stops the run. The end comes when it has stopped. */
export async function cancelTask(asked: Asked): Promise<Fields> {
  const { context, client } = asked
  const { row } = await openTask(asked)
  if (!hasEnded(row.status)) {
    await context.runtime.stop(row.id, 'The client has cancelled the task.')
    context.audit('runs.stop', row.id, 'done')
  }
  return toResult(client, {})
}

/** Takes answers to questions. What does not count is ignored, as the specification demands. */
export async function updateTask(asked: Asked, request: Request): Promise<Fields> {
  const { context, client, params } = asked
  const { row } = await openTask(asked)
  const given = ownValue(params, 'inputResponses')
  if (!isObject(given)) throw invalidParams('params.inputResponses must be an object.')
  const { runtime } = context
  const { log } = runtime.store
  const waitUntil = context.waitUntil(request)
  checkWaits(waitUntil, 'tasks/update')
  // Also of a run that goes on with another answer: each continues its own branch.
  const kept = hasEnded(row.status) ? undefined : await keptOf(runtime.store, row)
  if (kept === undefined) return toResult(client, {})
  const questions = await questionsOf(asked, kept, await readNotes(log, row.id))
  const { replies, left, misfits } = readAnswers(questions, given)
  for (const { requestId } of left) await noteLeft(log, row.id, requestId)
  for (const { request, misfits: time } of misfits) await noteMisfit(log, row.id, request.requestId, time)
  for (const [requestId, reply] of replies) replies.set(requestId, runtime.redact(reply))
  if (replies.size > 0) {
    await runtime.answerAll(row.id, replies, { protocol })
    waitUntil?.(runtime.open(row.id).then((run) => run?.result))
  }
  return toResult(client, {})
}

export interface OpenedTask {
  taskId: string
  row: RunRow
}

/** Throws one error for every id that does not count. */
export async function openTask(asked: Asked, taskId = ownValue(asked.params, 'taskId')): Promise<OpenedTask> {
  const { context, mcp, client } = asked
  if (!declaresTasks(client)) throw missingTasks()
  const { runs } = context.runtime.store
  const row = await mcp.tokens.openTask(taskId, context.principal, (run) => runs.get(run))
  if (row === undefined) throw invalidParams(unknownTaskText)
  return { taskId: taskId as string, row }
}

export async function readTask(asked: Asked, taskId: string, row: RunRow): Promise<Fields> {
  const { context, mcp } = asked
  const { store } = context.runtime
  const task: Fields = {
    taskId,
    status: 'working',
    createdAt: new Date(row.startedAt).toISOString(),
    lastUpdatedAt: new Date(row.updatedAt).toISOString(),
    ttlMs: mcp.options.keepsRunsMs ?? null,
  }
  switch (row.status) {
    case 'running': {
      const isYoung = timeOf(store) - row.startedAt < poll.firstMs
      const { words } = await mcp.words.of(store.log, row)
      return {
        ...task,
        ...(words !== '' && { statusMessage: words }),
        pollIntervalMs: isYoung ? poll.first : poll.later,
      }
    }
    case 'suspended':
      return { ...task, ...(await readWaiting(asked, row)), pollIntervalMs: poll.waiting }
    case 'aborted':
      return { ...task, status: 'cancelled', statusMessage: row.error?.message ?? 'The run was stopped.' }
    default:
      return { ...task, ...(await readEnd(asked, row)) }
  }
}

async function readWaiting(asked: Asked, row: RunRow): Promise<Fields> {
  const { store } = asked.context.runtime
  const kept = await keptOf(store, row)
  if (kept === undefined) return {}
  const questions = await questionsOf(asked, kept, await readNotes(store.log, row.id))
  const [first] = kept.requests
  const statusMessage = first === undefined ? undefined : waitingFor(questions[0]?.request ?? first)
  return {
    ...(statusMessage !== undefined && { statusMessage }),
    ...(questions.length > 0 && { status: 'input_required', inputRequests: toInputRequests(questions) }),
  }
}

/** A failed run is a completed task, with an error for the model. */
async function readEnd(asked: Asked, row: RunRow): Promise<Fields> {
  try {
    return { status: 'completed', result: toResult(asked.client, await readCallResult(asked, row.id)) }
  } catch (error) {
    if (error instanceof MillraceError) throw error
    asked.context.onError(error)
    return { status: 'failed', statusMessage: unexplained, error: { code: codes.internal, message: unexplained } }
  }
}
