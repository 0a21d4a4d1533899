/**
 * Makes this process the owner of a run that needs one, and decides from its log how it continues. It checks the row before the claim, so that a
 * wrong hint costs no claim; it folds the log after the claim, when no other process writes it.
 */
import { toMillraceError } from '../part/error.ts'
import { hasEnded, type Log, type RunRow, type Store } from '../part/log.ts'
import type { Part, SentMessage } from '../part/part.ts'
import { toSentMessage } from '../part/sent-message.ts'
import { waitingMessages } from '../engine/steering.ts'
import { threadClosed } from '../part/thread.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { mostRecoveries, foldState, type RunState } from '../engine/state.ts'
import type { Clock } from '../engine/run-clock.ts'
import { readStored } from '../engine/stored-pipeline.ts'
import type { RunEnding } from '../engine/write-end.ts'
import {
  closeDue,
  dueOf,
  openRequests,
  type Due,
  type PendingRequest,
  pendingAnswers,
  type Pending,
} from './pending-answers.ts'
import type { CanRun } from './can-run.ts'
import { fitsAccepted, notAccepted } from './foreign-run.ts'
import type { ForkPlan } from './fork-run.ts'
import type { ClaimReason } from './lifecycle.ts'

/** Waits until the run may start in its thread. */
export type AwaitTurn = (signal: AbortSignal) => Promise<void>

/** Restores the position of a run in its thread. */
export type Rejoin = (row: RunRow) => Promise<AwaitTurn | undefined>

/** How a claimed run continues. */
export type ClaimedWork =
  | {
      type: 'execute'
      pipeline: Pipeline
      first: Part[]
      turn?: AwaitTurn | undefined
      /** Requests without a reply. */
      unanswered?: PendingRequest[]
    }
  | { type: 'end'; ending: RunEnding }

/** A run that this process owns. */
export interface Owned {
  run: string
  threadId: string
  epoch: number
  state: RunState
  work: ClaimedWork
}

export type Looked =
  | { type: 'claimed'; owned: Owned }
  /**
   * Not claimed. `due`: the run waits for replies to these requests, and `seen` messages in its inbox were not replies. `lacks`: another process
   * must continue it.
   */
  | { type: 'unclaimed'; due?: Due; seen?: number; lacks?: true }
  /** `epoch`: the store failed after the claim. */
  | { type: 'claim-failed'; error: unknown; epoch?: number }

export interface ClaimContext {
  store: Store
  clock: Clock
  rejoin: Rejoin
  /** Absent if no other process can run it either. */
  canRun?: CanRun | undefined
}

export interface ClaimOptions {
  run: string
  reason: ClaimReason
  /** Only if the run still has this epoch. */
  epoch?: number | undefined
  /** The deadlines of its requests, as far as this process knows them. */
  due?: Due | undefined
  /** The run is a fork that continues with this plan, whatever its agent's policy for crashes is. */
  plan?: ForkPlan | undefined
}

const unclaimed = { type: 'unclaimed' } as const
const refused = 'this version no longer accepts the pipeline in its log.'
const triedBefore = `It was recovered ${mostRecoveries} times without progress and is not tried again.`

export async function claimRun(context: ClaimContext, options: ClaimOptions): Promise<Looked> {
  const { log, runs } = context.store
  const { run, reason, epoch, plan } = options
  let claimed: number | undefined
  try {
    const row = await runs.get(run)
    if (row === undefined || hasEnded(row.status) || (epoch !== undefined && epoch !== row.epoch)) return unclaimed
    // An active run has an owner, unless it was reported as an orphan.
    if (row.status !== 'suspended' && reason === 'hint') return unclaimed
    if (row.status === 'suspended' && plan === undefined) {
      const waits = await waitsFor(context, row, options.due)
      if (waits !== undefined) return { type: 'unclaimed', ...waits }
    }
    if (reason !== 'lost' && plan === undefined && (await context.canRun?.(row)) === false)
      return { type: 'unclaimed', lacks: true }
    if (!(await log.claim(run, row.epoch))) return unclaimed
    claimed = row.epoch + 1
    const state = await foldState(log, run)
    const work = plan !== undefined && reason !== 'lost' ? goOn(plan, state) : await decide(context, row, state, reason)
    const owned = { run, threadId: row.threadId, epoch: claimed, state, work: endUnlessAccepted(work, state) }
    return { type: 'claimed', owned }
  } catch (error) {
    return { type: 'claim-failed', error, ...(claimed === undefined ? undefined : { epoch: claimed }) }
  }
}

const lost: ClaimedWork = {
  type: 'end',
  ending: { code: 'failed', message: 'The store failed while the run was being recorded.', outcome: 'unavailable' },
}

/** The open requests of a suspended run. Undefined if a reply has come, or if no request is open. */
async function waitsFor(
  { store: { log }, clock }: ClaimContext,
  row: RunRow,
  known?: Due,
): Promise<{ due: Due; seen: number } | undefined> {
  const { id: run, lastSeq } = row
  const open = new Set<string>()
  for await (const batch of log.read(run, { after: lastSeq - 1 })) {
    for (const entry of batch) if (entry.type === 'suspend') for (const request of entry.requests) open.add(request)
  }
  // Also if its last entry is another one: a crash may have cut off its end.
  if (open.size === 0 || hasCome(await pendingAnswers(log, run, open))) return undefined
  const isKnown = known !== undefined && [...open].every((request) => known.has(request))
  const due = isKnown ? known : dueOf(await openRequests(log, run), known, clock.wall(), clock)
  await closeDue(log, run, due, clock)
  const pending = await pendingAnswers(log, run, open)
  return hasCome(pending) ? undefined : { due, seen: pending.seen }
}

function hasCome({ stop, answered }: Pending): boolean {
  return stop !== undefined || answered.size > 0
}

/**
 * Every continuation of a run from its log passes here. A run that was recorded elsewhere continues only with a `resume` that names its text; not
 * after its deadlines, and not if a crash cut off its import, so that it seems to be running.
 */
function endUnlessAccepted(work: ClaimedWork, { isForeign }: RunState): ClaimedWork {
  if (!isForeign || work.type === 'end') return work
  const isAccepted = work.first.some((part) => part.type === 'resume' && part.pipeline !== undefined)
  return isAccepted ? work : end('interrupted', notAccepted)
}

/** Its open requests stay open. */
function goOn({ pipeline, first }: ForkPlan, { open }: RunState): ClaimedWork {
  return { type: 'execute', pipeline, first, unanswered: [...open.requests.values()] }
}

/** Decides from the log and the inbox how a run without owner continues. */
async function decide(
  { store: { log }, rejoin }: ClaimContext,
  row: RunRow,
  state: RunState,
  reason: ClaimReason,
): Promise<ClaimedWork> {
  const { open } = state
  const { stop, closed, wake, answered, accepted } = await pendingAnswers(log, row.id, open.requests)
  const dropped = stop === undefined ? [] : await droppedMessages(log, row.id, state)
  if (stop !== undefined && closed === true)
    return {
      type: 'end',
      ending: { code: 'aborted', message: stop, outcome: 'unavailable', errorCode: threadClosed, messages: dropped },
    }
  if (stop !== undefined)
    return { type: 'end', ending: { code: 'aborted', message: stop, outcome: 'aborted', messages: dropped } }
  // A stop comes first: it was confirmed to its caller.
  if (reason === 'lost') return lost
  // A crash cut off its end, so nothing could resume it.
  if (open.suspended && open.requests.size === 0) return end('interrupted', 'The server stopped.')
  const accepts = state.isForeign ? fitsAccepted(state, accepted) : undefined
  const pipeline = accepts ?? readStored(state.start?.pipeline)
  if (open.suspended) {
    if (pipeline === undefined) return end('interrupted', `The run cannot continue: ${refused}`)
    const unanswered = [...open.requests.values()].filter(({ requestId }) => !answered.has(requestId))
    const change = accepts && { agent: accepted!.agent, pipeline: accepts.text }
    return { type: 'execute', pipeline, first: [{ type: 'resume', protocol: 'api', ...wake, ...change }], unanswered }
  }
  const message = 'The server stopped while the run was active.'
  if (pipeline === undefined) return end('interrupted', `${message} It cannot continue: ${refused}`)
  if (!pipeline.recover && !state.isHandedOn) return end('interrupted', message)
  if (state.recoveries >= mostRecoveries) return end('interrupted', `${message} ${triedBefore}`)
  try {
    return { type: 'execute', pipeline, first: [], turn: await rejoin(row) }
  } catch (error) {
    return end('interrupted', `${message} It cannot continue: ${toMillraceError(error).message}`)
  }
}

async function droppedMessages(log: Log, run: string, { messages }: RunState): Promise<SentMessage[]> {
  const waiting = await waitingMessages(log, run, (id) => messages.has(id))
  return waiting.map(({ id, posted }) => ({ ...toSentMessage(id, posted), outcome: 'dropped' }))
}

function end(code: RunEnding['code'], message: string, outcome: RunEnding['outcome'] = 'unavailable'): ClaimedWork {
  return { type: 'end', ending: { code, message, outcome } }
}
