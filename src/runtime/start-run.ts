/** Starts a run: its key, its position in its thread, its first entry. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { type Store, threadOf } from '../part/log.ts'
import type { Part } from '../part/part.ts'
import { isOwnedThread, plainThread, scopedThread, threadMark, type RunUser } from '../part/principal.ts'
import { toTraceparent } from '../part/traceparent.ts'
import { createRunState } from '../engine/state.ts'
import { giveUp, claimTurn } from './announcements.ts'
import type { ModelResolver } from '../models/language-model.ts'
import { checkRunInput } from './check-run-input.ts'
import type { ActiveRuns } from './active-runs.ts'
import type { ClaimedWork } from './claim-run.ts'
import { agentOfStart } from './own-text.ts'
import { closingError, runExists } from './runtime-errors.ts'
import type { Agent, StartOptions } from './runtime.ts'
import type { Supervisor } from './supervisor.ts'
import type { ThreadQueue, TriedPlace } from './thread-queue.ts'
import { MillraceError } from '../part/error.ts'
import { messagesOf } from '../part/message.ts'
import { sayableFiles } from '../models/model.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'

export interface StartContext {
  store: Store
  models: ModelResolver
  supervisor: Supervisor
  queue: ThreadQueue
  activeRuns: ActiveRuns
  shutdown: AbortSignal
  newRunId(): string
}

export interface Started {
  runId: string
  threadId: string
  /** The run existed before. */
  joined: boolean
}

/** Resolves when `run-start` is stored. */
export async function startRun(
  { store, models, supervisor, queue, activeRuns, shutdown, newRunId }: StartContext,
  { id: agent, pipeline: itsFile }: Agent,
  given: Record<string, unknown>,
  options: StartOptions,
): Promise<Started> {
  const { log, runs } = store
  const { protocol = 'library', labels, parentRunId, handOver, noClientTools, turnKey, settings } = options
  const { runId = newRunId(), keepsSuspended, isBeside, user } = options
  if (options.runId !== undefined && (await runs.get(runId)) !== undefined) throw runExists(runId)
  const { pipeline, own } = await agentOfStart(store, { id: agent, pipeline: itsFile }, options)
  const input = checkRunInput(pipeline, given)
  await checkFiles(models, pipeline, input)
  const follows = options.follows === true
  const fromServer = follows || (pipeline.history ?? options.history) === 'server'
  const { previousRunId } = options
  const inThread = await threadOfBranch(store, {
    agent,
    fromServer,
    ...omitUndefined({ previousRunId, user, threadId: options.threadId && scopedThread(options.threadId, user) }),
  })
  if (user === undefined && inThread !== undefined && isOwnedThread(inThread)) {
    throw bad(`Thread ${inThread} is a user's: only that user can continue it, as ${plainThread(inThread)}.`)
  }
  const announcement = supervisor.announce(runId)
  if (announcement === undefined) throw runExists(runId)
  const threadId = inThread ?? scopedThread(threadOf(runId), user)
  const wanted = isBeside === true || follows ? 'queue' : (pipeline.onBusy ?? options.onBusy ?? 'interrupt')
  // A message that no running turn can take waits for its own.
  const policy = wanted === 'steer' ? 'queue' : wanted
  let mayBeAwaited = false
  try {
    let tried: TriedPlace | undefined
    if (turnKey !== undefined) {
      const key = `${agent}:${turnKey}${inThread === undefined ? threadMark(user) : ''}`
      // The position is posted together with the key only if the thread cannot refuse the run.
      const isCertain = inThread !== undefined && policy !== 'reject'
      const place = isCertain ? await queue.lastPlace(threadId, runId) : undefined
      const { winner, placed } = await claimTurn({
        store,
        threadId: inThread,
        key,
        run: runId,
        place,
        announcements: supervisor,
        shutdown,
      })
      if (winner !== runId) {
        announcement.refuse()
        return { runId: winner, threadId: inThread ?? scopedThread(threadOf(winner), user), joined: true }
      }
      mayBeAwaited = true
      if (place !== undefined && placed !== undefined) tried = { place, posted: placed }
    }
    // Before the thread's active run is interrupted for it.
    await activeRuns.enter(runId, agent, pipeline, user)
    const ticket =
      inThread === undefined ? {} : await queue.join(threadId, runId, policy, { tried, keepsSuspended, isBeside })
    mayBeAwaited ||= inThread !== undefined
    const start: Part = {
      type: 'run-start',
      runId,
      agent,
      pipeline: pipeline.text,
      threadId,
      protocol,
      input,
      ...omitUndefined({
        ownPipeline: own || undefined,
        labels,
        wireOptions: options.wireOptions,
        traceparent: toTraceparent(options.traceparent),
        parentRunId,
        user,
        previousRunId: !fromServer || previousRunId === null ? undefined : (previousRunId ?? ticket.previous),
        handOver: handOver || undefined,
        noClientTools: noClientTools || undefined,
        settings,
        ownHeaders: options.mcpHeaders && Object.keys(options.mcpHeaders),
      }),
    }
    if (shutdown.aborted) throw closingError()
    const warnings = (options.ignored ?? []).map((message): Part => ({ type: 'warning', code: 'ignored', message }))
    const work: ClaimedWork = { type: 'execute', pipeline, first: [start, ...warnings], turn: ticket.turn }
    if (options.mcpHeaders !== undefined) supervisor.keepHeaders(runId, options.mcpHeaders)
    const how = await announcement.start({ run: runId, threadId, epoch: 1, state: createRunState(), work })
    if (how === 'moved' && options.runId !== undefined) throw runExists(runId)
    return { runId, threadId, joined: how === 'moved' }
  } catch (error) {
    activeRuns.leave(runId)
    announcement.refuse(error)
    // So that other processes do not wait for its first entry.
    if (mayBeAwaited) await giveUp(log, runId, 'The start was refused.').catch(() => undefined)
    throw error
  }
}

/** A run that continues another run than the thread's last: the user has edited a message, or wants another answer. */
interface Branch {
  agent: string
  /** The server has the conversation. */
  fromServer: boolean
  previousRunId?: string | null | undefined
  threadId?: string | undefined
  user?: RunUser | undefined
}

/** The thread that the run belongs to, unless it gets its own. Throws `bad-input` if the previous run is of another thread. */
async function threadOfBranch({ runs }: Pick<Store, 'runs'>, branch: Branch): Promise<string | undefined> {
  const { agent, fromServer, previousRunId: previous, threadId, user } = branch
  if (previous === undefined) return threadId
  if (!fromServer) {
    const cure = 'Leave previousRunId out, and send the messages that the model is to be told.'
    throw bad(`The clients of agent "${agent}" keep its conversations (history: client). ${cure}`)
  }
  if (previous === null) return threadId
  const row = await runs.get(previous)
  // All threads of a user bear the user's mark.
  if (row === undefined || !row.threadId.endsWith(threadMark(user)))
    throw bad(`previousRunId names no run: ${previous}. List those of a thread with GET /api/threads/<id>.`)
  if (threadId === undefined || row.threadId === threadId) return row.threadId
  throw bad(`previousRunId must be a run of thread ${threadId}; ${previous} is one of thread ${row.threadId}.`)
}

function bad(message: string): MillraceError {
  return new MillraceError('bad-input', message, { status: 400 })
}

/* Refuses a file that no model of the first step accepts, before the run starts: then the thread is unchanged. */

/** Throws `bad-input`. Files that depend on references or earlier steps are unknown here: the model call refuses them. */
async function checkFiles(
  models: ModelResolver,
  { workflow }: Pipeline,
  input: Record<string, unknown>,
): Promise<void> {
  const first = workflow.find(({ type }) => type !== 'memory')
  if (first?.type !== 'llm' && first?.type !== 'router') return
  const { model = models.defaultModel, fallbacks = [], providerOptions } = first.config
  const names = [model, ...fallbacks]
  if (first.config.messages !== '$input.messages') return
  let refusal: MillraceError | undefined
  for (const name of names) {
    if (name === undefined || name.includes('$')) return
    try {
      await sayableFiles(models.resolve(name), {
        messages: messagesOf(input),
        ...(providerOptions && { providerOptions }),
      })
      return
    } catch (error) {
      if (!(error instanceof MillraceError) || error.code !== 'bad-input') return
      refusal ??= error
    }
  }
  if (refusal !== undefined) throw refusal
}
