/** Starts a run: its key, its position in its thread, its first entry. */
import { compact } from '../part/compact.ts'
import type { Store } from '../part/log.ts'
import type { Part } from '../part/part.ts'
import { threadOf } from '../part/thread-of.ts'
import { toTraceparent } from '../part/traceparent.ts'
import { createRunState } from '../engine/state.ts'
import { giveUp } from './announced-run.ts'
import { threadOfBranch } from './branch.ts'
import type { ModelResolver } from '../models/language-model.ts'
import { checkFiles } from './check-files.ts'
import { checkRunInput } from './check-run-input.ts'
import type { ActiveRuns } from './active-runs.ts'
import type { Work } from './claim-run.ts'
import { claimTurn } from './claim-turn.ts'
import { closingError, runExists } from './runtime-errors.ts'
import type { Agent, StartOptions } from './runtime.ts'
import type { Supervisor } from './supervisor.ts'
import type { ThreadQueue, TriedPlace } from './thread-queue.ts'

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
  /** The run existed already. */
  joined: boolean
}

/** Resolves when `run-start` is stored. */
export async function startRun(
  { store, models, supervisor, queue, activeRuns, shutdown, newRunId }: StartContext,
  { id: agent, pipeline }: Agent,
  given: Record<string, unknown>,
  options: StartOptions,
): Promise<Started> {
  const { log, runs } = store
  const { protocol = 'library', labels, parentRunId, handOver, turnKey, settings } = options
  const { runId = newRunId(), keepsSuspended, isBeside } = options
  if (options.runId !== undefined && (await runs.get(runId)) !== undefined) throw runExists(runId)
  const input = checkRunInput(pipeline, given)
  await checkFiles(models, pipeline, input)
  const fromServer = (pipeline.history ?? options.history) === 'server'
  const { previousRunId } = options
  const inThread = await threadOfBranch(store, {
    agent,
    fromServer,
    ...compact({ previousRunId, threadId: options.threadId }),
  })
  const announcement = supervisor.announce(runId)
  if (announcement === undefined) throw runExists(runId)
  const threadId = inThread ?? threadOf(runId)
  const policy = isBeside === true ? 'queue' : (pipeline.onBusy ?? options.onBusy ?? 'interrupt')
  let mayBeAwaited = false
  try {
    let tried: TriedPlace | undefined
    if (turnKey !== undefined) {
      const key = `${agent}:${turnKey}`
      // A thread that may refuse the run is asked first.
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
        return { runId: winner, threadId: inThread ?? threadOf(winner), joined: true }
      }
      mayBeAwaited = true
      if (place !== undefined && placed !== undefined) tried = { place, posted: placed }
    }
    // Before the thread's active run is interrupted for it.
    await activeRuns.enter(runId, agent, pipeline)
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
      ...compact({
        labels,
        wireOptions: options.wireOptions,
        traceparent: toTraceparent(options.traceparent),
        parentRunId,
        previousRunId: !fromServer || previousRunId === null ? undefined : (previousRunId ?? ticket.previous),
        handOver: handOver || undefined,
        settings,
        ownHeaders: options.mcpHeaders && Object.keys(options.mcpHeaders),
      }),
    }
    if (shutdown.aborted) throw closingError()
    // Who chose the id may have stopped it already.
    const isAwaited = mayBeAwaited || options.runId !== undefined
    const warnings = (options.ignored ?? []).map((message): Part => ({ type: 'warning', code: 'ignored', message }))
    const work: Work = { type: 'execute', pipeline, first: [start, ...warnings], turn: ticket.turn, isAwaited }
    if (options.mcpHeaders !== undefined) supervisor.keepHeaders(runId, options.mcpHeaders)
    const how = await announcement.start({ run: runId, threadId, epoch: 1, state: createRunState(), work })
    if (how === 'moved' && options.runId !== undefined) throw runExists(runId)
    return { runId, threadId, joined: how === 'moved' }
  } catch (error) {
    activeRuns.leave(runId)
    announcement.refuse(error)
    // So that nobody in another process waits for its first entry.
    if (mayBeAwaited) await giveUp(log, runId, 'The start was refused.').catch(() => undefined)
    throw error
  }
}
