/**
 * One call of an MCP tool. A usual call is a request and its result. A server may also ask a person first, or answer with a task that goes on: then each
 * answer that is not the last is a step below the call's, and the call is derived from these steps. So it goes on after an answer, a restart or a
 * takeover, and nothing is sent a second time: see decisions/0044.
 */
import type { EntryOf } from '../part/entry.ts'
import { fromErrorValue, MillraceError, toErrorValue } from '../part/error.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { joinPath } from '../part/path.ts'
import type { McpAnswer, McpQuestion, McpQuestions, McpReply } from '../tools/mcp/answer.ts'
import { pollDelay, pollTimer } from '../tools/mcp/poll-timer.ts'
import { openSecret, sealSecret } from './kept-secret.ts'
import { progressAt, type Progress } from './mcp-progress.ts'
import { askAll, askInCall, canAsk } from './mcp-questions.ts'
import { pollTask, taskStep } from './mcp-task.ts'
import type { Kept, KeptTask, McpWork, Recorded } from './mcp-work.ts'
import { inStep, mcpOf, Suspended, traceparentOf, type Scope } from './scope.ts'

/** What the process that made the call has taken with it: it is not made again. */
export class LostCall extends MillraceError {
  constructor() {
    super('interrupted', 'it was interrupted by a crash and is not run a second time.')
  }
}

const answerStep = 'mcp-answer'
const retryStep = 'mcp-retry'
/** Answers of one call that are not the last. */
const mostRounds = 50

/** Runs the call of the open step at `path`. Throws its failure, {@link LostCall}, and what ends or suspends the run. */
export async function runMcpCall(scope: Scope, path: string, work: McpWork): Promise<unknown> {
  const progress = progressAt(scope, path, work.call)
  try {
    return await goOn(scope, path, work, progress)
  } finally {
    progress.end()
  }
}

async function goOn(scope: Scope, path: string, work: McpWork, progress: Progress): Promise<unknown> {
  const { state } = scope
  const child = (n: number) => joinPath(path, n)
  let n = 0
  let last: Recorded | undefined
  while (state.finished.has(child(n + 1))) last = asRecorded(state.finished.get(child(++n))!)
  const open = state.steps.get(child(n + 1))
  if (last === undefined) {
    if (work.resumed) throw lost(scope, path)
    last = await first()
  }
  if (open !== undefined && open.stepType !== taskStep) {
    // The retry was sent, and its answer is lost.
    const error = new LostCall()
    await inStep(scope, child(n + 1), retryStart, async () => {
      const failed: Recorded = { state: 'failed', error: toErrorValue(error) }
      return { value: failed, result: failed }
    })
    throw lost(scope, path)
  }
  for (;;) {
    if (last.state === 'done') return last.value
    if (last.state === 'failed') throw fromErrorValue(last.error)
    if (n >= mostRounds)
      throw new MillraceError(
        'tool-failed',
        `The MCP server "${work.server}" did not come to an end in ${mostRounds} answers.`,
      )
    const kept: Kept | undefined = await openSecret<Kept>(scope.store.log, last.kept)
    if (kept === undefined) throw lost(scope, path)
    last = 'task' in kept ? await followTask(n, kept) : await retry(n, kept)
    n++
  }

  /** The first request is that of the call's own step: most answers are the result, and nothing else is recorded. */
  async function first(): Promise<Recorded> {
    await scope.stored()
    scope.signal.throwIfAborted()
    const answer = await send()
    if (answer.kind === 'result') return { state: 'done', value: answer.value }
    if (answer.kind === 'task' && answer.task.words !== undefined) progress.say(answer.task.words)
    const recorded = await toRecorded(scope, work, answer)
    n = 1
    return inStep(scope, child(n), answerStart, async () => ({ value: recorded, result: recorded }))
  }

  async function retry(round: number, { questions, state: requestState }: Extract<Kept, { questions: McpQuestions }>) {
    const replies = await askAll(scope, path, { work, round, questions })
    if (questions.length === 0) await pollTimer.wait(pollDelay(0), scope.signal)
    return inStep(scope, child(round + 1), retryStart, async () => {
      await scope.stored()
      scope.signal.throwIfAborted()
      const inputResponses = replies.length === 0 ? undefined : Object.fromEntries(replies)
      const recorded = await attempt(async () =>
        toRecorded(scope, work, await send(omitUndefined({ inputResponses, requestState }))),
      )
      return { value: recorded, result: recorded }
    })
  }

  async function send(retried?: {
    inputResponses?: Record<string, McpReply>
    requestState?: string
  }): Promise<McpAnswer> {
    const { server, tool, input, timeout, forModel } = work
    const traceparent = traceparentOf(scope, path)
    const asks = canAsk(scope, server)
    return mcpOf(scope).exchange(server, tool, input, {
      signal: scope.signal,
      forModel,
      asks,
      tasks: true,
      run: scope.runId,
      progress: progress.say,
      ...(asks && { answer: (question: McpQuestion) => askInCall(scope, path, work, question) }),
      ...omitUndefined({ timeout, traceparent, retry: retried }),
    })
  }

  /** A failure of the server is the result of the step. What ends the run is thrown. */
  async function attempt(task: () => Promise<Recorded>): Promise<Recorded> {
    try {
      return await task()
    } catch (error) {
      if (error instanceof Suspended || scope.signal.aborted) throw error
      return { state: 'failed', error: toErrorValue(error, 'tool-failed') }
    }
  }

  function followTask(round: number, { task, pollMs }: KeptTask): Promise<Recorded> {
    return inStep(scope, child(round + 1), taskStart, async () => {
      const recorded = await attempt(() => pollTask(scope, path, { work, round, id: task, pollMs, progress }))
      return { value: recorded, result: recorded }
    })
  }
}

const answerStart = { stepType: answerStep, kind: 'task' } as const
const retryStart = { stepType: retryStep, kind: 'task' } as const
const taskStart = { stepType: taskStep, kind: 'task' } as const

function asRecorded({ result, error }: EntryOf<'step-finish'>): Recorded {
  if (error !== undefined) return { state: 'failed', error }
  return result as Recorded
}

async function toRecorded({ store }: Scope, { server, tool }: McpWork, answer: McpAnswer): Promise<Recorded> {
  switch (answer.kind) {
    case 'result':
      return { state: 'done', value: answer.value }
    case 'input': {
      const { questions, state } = answer
      return { state: 'input_required', kept: await sealSecret(store.log, omitUndefined({ questions, state })) }
    }
    case 'task': {
      const { id, pollMs, outcome } = answer.task
      if (outcome !== undefined && 'value' in outcome) return { state: 'done', value: outcome.value }
      return { state: 'task', kept: await sealSecret(store.log, omitUndefined({ task: id, pollMs, server, tool })) }
    }
  }
}

/** Questions that the call had in memory have nobody any more who waits for their answers. */
function lost(scope: Scope, path: string): LostCall {
  for (const { request, response } of scope.state.asked.get(path) ?? []) {
    if (response !== undefined) continue
    const reason = 'The call that asked was lost with its process.'
    scope.emit(path, { type: 'response', requestId: request.requestId, outcome: 'closed', reason })
  }
  return new LostCall()
}
