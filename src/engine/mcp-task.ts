/** Tasks of an MCP server: they are polled until they end, by whichever process has the run. */
import { MillraceError, toErrorValue } from '../part/error.ts'
import type { Store } from '../part/log.ts'
import { joinPath, parentPath } from '../part/path.ts'
import type { McpReply, McpTaskState } from '../tools/mcp/answer.ts'
import { taskTimeout } from '../tools/mcp/server.ts'
import { pollDelay, pollTimer, retryDelay } from '../tools/mcp/poll-timer.ts'
import { openSecret } from './kept-secret.ts'
import type { Progress } from './mcp-progress.ts'
import { askAll, canAsk } from './mcp-questions.ts'
import type { KeptTask, McpWork, Recorded } from './mcp-work.ts'
import { mcpOf, type Scope } from './scope.ts'
import type { RunState } from './state.ts'
import { endOutcomes } from './write-end.ts'

/** The type of the step in which a task is polled. */
export const taskStep = 'mcp-task'

interface Following {
  work: McpWork
  round: number
  id: string
  pollMs: number | undefined
  progress: Progress
}

/** Failures after which the server may be there again. */
const passing: ReadonlySet<string> = new Set(['mcp-lost', 'mcp-unreachable', 'timed-out', 'mcp-session-ended'])

/** Polls until the task has ended. Its step is open, and its id in the log. */
export async function pollTask(
  scope: Scope,
  path: string,
  { work, round, id, pollMs, progress }: Following,
): Promise<Recorded> {
  const { server, tool, forModel } = work
  const { signal, state } = scope
  const pool = mcpOf(scope)
  await scope.stored()
  const started = state.open.steps.get(joinPath(path, round + 1))?.timestamp ?? scope.now()
  const limit = taskTimeout(pool.servers.get(server)!)
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
      const { outcome, questions = [], words } = task
      if (outcome === undefined && words !== undefined) progress.say(words)
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
