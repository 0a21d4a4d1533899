/**
 * One call of an MCP tool. A usual call is a request and its result. A server may also ask a person first, or answer with a task that goes on: then each
 * answer that is not the last is a step below the call's, and the call is derived from these steps. So it goes on after an answer, a restart or a
 * takeover, and nothing is sent a second time: see decisions/0044.
 */
import type { EntryOf } from '../part/entry.ts'
import { messageOf, MillraceError, toErrorValue, fromErrorValue, wholeMessage, type ErrorValue } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { joinPath, parentPath } from '../part/path.ts'
import type { McpAnswer, McpQuestion, McpQuestions, McpReply, McpTaskState } from '../tools/mcp/answer.ts'
import type { RunState } from './state.ts'
import { pollDelay, pollTimer, retryDelay } from '../tools/mcp/poll-timer.ts'
import { endOutcomes } from './write-end.ts'
import { openSecret, sealSecret } from './kept-secret.ts'
import { inStep, mcpOf, Suspended, traceparentOf, type Scope } from './scope.ts'

export interface McpWork {
  server: string
  tool: string
  /** The arguments, checked. */
  input: unknown
  /** ms until the server must have answered, with a result, a question or a task. Default: the server's. */
  timeout?: number | undefined
  /** A model reads the result. */
  forModel: boolean
  /** The step of the call was started before, by another process or before the run waited. */
  resumed: boolean
}

/** What the process that made the call has taken with it: it is not made again. */
export class LostCall extends MillraceError {
  constructor() {
    super('interrupted', 'it was interrupted by a crash and is not run a second time.')
  }
}

/** An answer as the log has it: the result of a step. What only the server may read is sealed. */
type Recorded =
  | { state: 'done'; value: unknown }
  | { state: 'failed'; error: ErrorValue }
  | { state: 'input_required' | 'task'; kept: string }

/** What is sealed in an answer. */
type Kept = { questions: McpQuestions; state?: string } | KeptTask

interface KeptTask {
  task: string
  pollMs?: number
  server: string
  tool: string
}

const answerStep = 'mcp-answer'
const retryStep = 'mcp-retry'
export const taskStep = 'mcp-task'
/** Answers of one call that are not the last. */
const mostRounds = 50
/** Bytes of what a person fills in, as JSON. */
const mostContentBytes = 64 * 1024

/** Runs the call of the open step at `path`. Throws its failure, {@link LostCall}, and what ends or suspends the run. */
export async function runMcpCall(scope: Scope, path: string, work: McpWork): Promise<unknown> {
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
      const recorded = await attempt(() => pollTask(scope, path, { work, round, id: task, pollMs }))
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

/** Whether the server is told that people can be asked. */
function canAsk({ canWait, handOver, cannotAsk, mcp }: Scope, server: string): boolean {
  return mcp?.servers.get(server)?.elicitation === true && canWait && !handOver && cannotAsk !== true
}

/* Questions of the server. */

interface Asking {
  work: McpWork
  /** The number of the answer that asks. */
  round: number
  questions: McpQuestions
}

/** Asks what has not been asked, all at once, and resolves with the replies by the server's keys. Unwinds the run while it waits. */
async function askAll(scope: Scope, path: string, { work, round, questions }: Asking): Promise<[string, McpReply][]> {
  const responses = new Map<string, EntryOf<'response'>>()
  const tasks = questions.map(([key, question]) => async () => {
    const tag = `${round}/${key}`
    const known = scope.state.asked
      .get(path)
      ?.find(({ request }) => request.kind === 'input' && request.metadata?.['question'] === tag)
    const response =
      known?.response ??
      (await scope.request(path, toRequest(scope, work, question, { tag, known: known?.request }), scope.signal))
    responses.set(key, response)
  })
  await scope.fork(tasks)
  return questions.map(([key, { mode }]) => [key, toReply(responses.get(key)!, mode)])
}

/** For legacy servers: the call stays open, and with it the run. */
async function askInCall(scope: Scope, path: string, work: McpWork, question: McpQuestion): Promise<McpReply> {
  const tag = `call/${scope.state.asked.get(path)?.length ?? 0}`
  const request = toRequest(scope, work, question, { tag })
  const { requestId, deadline } = request
  const response = scope.request(path, request, scope.signal, 'holds')
  const late = setTimeout(
    () => {
      const isOpen = scope.state.open.requests.has(requestId) && !scope.signal.aborted
      if (isOpen) scope.emit(path, { type: 'response', requestId, outcome: 'closed', reason: 'deadline' })
    },
    Math.min(deadline - scope.now(), 2 ** 31 - 1),
  )
  try {
    return toReply(await response, question.mode)
  } finally {
    clearTimeout(late)
  }
}

function toRequest(
  scope: Scope,
  { server, tool }: McpWork,
  { mode, message, schema, url }: McpQuestion,
  { tag, known }: { tag: string; known?: EntryOf<'request'> | undefined },
) {
  return omitUndefined({
    requestId: known?.requestId ?? `${scope.runId}.${scope.newId()}`,
    kind: 'input' as const,
    reason: 'mcp-elicitation',
    // Under the name of the server: it is not Millrace that asks.
    message: [`The MCP server "${server}" asks: ${message}`, ...(url === undefined ? [] : [url])].join('\n'),
    schema,
    metadata: omitUndefined({ server, tool, mode, url, question: tag }),
    deadline: known?.deadline ?? scope.now() + scope.requestDeadline,
  })
}

function toReply({ answer }: EntryOf<'response'>, mode: McpQuestion['mode']): McpReply {
  if (answer?.kind !== 'input') return { action: 'cancel' }
  if (!('value' in answer)) return { action: answer.declined === true ? 'decline' : 'cancel' }
  if (mode === 'url') return { action: 'accept' }
  const { value } = answer
  const isContent = typeof value === 'object' && value !== null && !Array.isArray(value)
  const content = isContent ? (value as Record<string, unknown>) : {}
  if (new TextEncoder().encode(JSON.stringify(content)).length > mostContentBytes) {
    throw new MillraceError(
      'tool-failed',
      `The answer has more than ${mostContentBytes} bytes, so it was not passed on.`,
    )
  }
  return { action: 'accept', content }
}

/* Tasks of the server. */

interface Following {
  work: McpWork
  round: number
  id: string
  pollMs: number | undefined
}

/** Failures after which the server may be there again. */
const passing: ReadonlySet<string> = new Set(['mcp-lost', 'mcp-unreachable', 'timed-out', 'mcp-session-ended'])

/** Polls until the task has ended. Its step is open, and its id in the log. */
async function pollTask(scope: Scope, path: string, { work, round, id, pollMs }: Following): Promise<Recorded> {
  const { server, tool, forModel } = work
  const { signal, state } = scope
  const pool = mcpOf(scope)
  await scope.stored()
  const started = state.open.steps.get(joinPath(path, round + 1))?.timestamp ?? scope.now()
  const limit = pool.servers.get(server)?.taskTimeout
  const sent = new Set<string>()
  let failures = 0
  let delay = pollDelay(pollMs)
  try {
    for (;;) {
      const held = scope.pass()
      if (held !== undefined) await held
      await pollTimer.wait(delay, signal)
      const used = scope.now() - started - state.suspendedSince(started)
      if (limit !== undefined && used >= limit) {
        await cancel(scope, work, id)
        return failed(
          new MillraceError('timed-out', `The task of ${tool} did not end within ${limit} ms (taskTimeout).`),
        )
      }
      let task: McpTaskState
      try {
        task = (await pool.task(server, id, { method: 'tasks/get', tool }, { signal, forModel }))!
        failures = 0
      } catch (error) {
        if (signal.aborted || !(error instanceof MillraceError) || !passing.has(error.code)) throw error
        delay = retryDelay(++failures)
        continue
      }
      delay = pollDelay(task.pollMs)
      const { outcome, questions = [] } = task
      if (outcome !== undefined) {
        if ('value' in outcome) return { state: 'done', value: outcome.value }
        return failed(new MillraceError('tool-failed', outcome.error))
      }
      const fresh = questions.filter(([key]) => !sent.has(key))
      if (fresh.length === 0) continue
      const replies = canAsk(scope, server)
        ? await askAll(scope, path, { work, round, questions: fresh })
        : fresh.map(([key]): [string, McpReply] => [key, { action: 'cancel' }])
      const params = { inputResponses: Object.fromEntries(replies) }
      await pool.task(server, id, { method: 'tasks/update', params, tool }, { signal })
      for (const [key] of fresh) sent.add(key)
    }
  } catch (error) {
    if (signal.aborted && endOutcomes.has(toErrorValue(signal.reason).code)) void cancel(scope, work, id)
    throw error
  }
}

function failed(error: MillraceError): Recorded {
  return { state: 'failed', error: toErrorValue(error) }
}

/** ms */
const cancelTimeout = 5000

interface Ending extends Pick<Scope, 'state' | 'mcp'> {
  store: Pick<Store, 'log'>
}

/** Of each run, the tasks that were cancelled here. */
const cancelled = new WeakMap<RunState, Set<string>>()

/** The server may not be there: then its own limits end the task. */
async function cancel(scope: Ending, { server, tool }: Pick<McpWork, 'server' | 'tool'>, id: string): Promise<void> {
  const known = cancelled.get(scope.state) ?? new Set()
  cancelled.set(scope.state, known)
  if (known.has(id)) return
  known.add(id)
  await scope.mcp?.task(server, id, { method: 'tasks/cancel', tool }, { timeout: cancelTimeout }).catch(() => undefined)
}

/** Cancels the tasks of a run that ends while they go on: they may have been followed by a process that is gone. */
export async function cancelTasks(scope: Ending): Promise<void> {
  const { open, steps, finished } = scope.state
  const paths = [...open.steps.keys()].filter((path) => steps.get(path)?.stepType === taskStep)
  for (const path of paths) {
    const at = Number(path.slice(path.lastIndexOf('/') + 1))
    const answer = finished.get(joinPath(parentPath(path), at - 1))?.result as { kept?: unknown } | undefined
    const kept = await openSecret<KeptTask>(scope.store.log, answer?.kept).catch(() => undefined)
    if (kept !== undefined) await cancel(scope, kept, kept.task)
  }
}
