/**
 * One run that one client follows: a cursor into its log, read as fast as the connection takes it. A slow client costs one batch.
 */
import { compact } from '../../part/compact.ts'
import { openAnswer } from '../../answer/open-answer.ts'
import { readStanding } from '../../answer/standing.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import { toCallId } from '../../wire/ag-ui/ag-ui-call-names.ts'
import type { AgUiEvent, AgUiOptions } from '../../wire/ag-ui/ag-ui-event.ts'
import { agUiObjectsWire } from '../../wire/ag-ui/ag-ui.ts'
import { createClientCalls, type ClientCalls } from './client-calls.ts'
import type { Drain } from './drain.ts'
import type { SentEvent } from './emit-events.ts'
import { numberedWire, type NumberedEvent, type Position } from './numbered-wire.ts'
import type { SessionContext } from './session-context.ts'

export interface FollowOptions {
  runId: string
  /** The client's id of the run, until an event says another. */
  label: string
  threadId: string
  /** What the client has. Default: nothing. */
  after?: Position
  /** The run began or went on for this client, so nothing of it is superseded, and what was before has ended for it. */
  isNew: boolean
  /** The calls whose results the client has sent with its request. */
  answered?: ReadonlySet<string>
  options: Partial<AgUiOptions>
  policy: DisconnectPolicy
  drain: Drain
  emit(events: readonly SentEvent[]): void
  /** No event follows. */
  onEnd(): void
}

export interface FollowedRun {
  readonly runId: string
  readonly threadId: string
  /** The client's id of the run, or ours. */
  readonly label: string
  readonly isOver: boolean
  readonly calls: ClientCalls
  /** Settles when it has read what was stored when it began: until then `calls` may lack some. */
  caughtUp: Promise<void>
  /** Begins to send. Call it once. */
  begin(): void
  leave(): void
}

export async function followRun(context: SessionContext, options: FollowOptions): Promise<FollowedRun> {
  const { runtime, signal, onWaiting } = context
  const { log, runs } = runtime.store
  const { runId, label, threadId, after = { seq: 0 }, isNew, answered, policy, drain, emit, onEnd } = options
  const calls = createClientCalls({ log, runId, signal, onWaiting })
  const lastSeq = isNew ? after.seq : ((await runs.get(runId))?.lastSeq ?? 0)
  const caughtUp = Promise.withResolvers<void>()
  if (lastSeq === 0) caughtUp.resolve()
  /** The run as the client calls it. */
  let of = { runId: label, threadId }
  let isOver = false

  function takeLabel(event: AgUiEvent): void {
    if (event.type === 'RUN_STARTED') of = { runId: event.runId, threadId }
  }

  function finish(): void {
    if (isOver) return
    isOver = true
    // A session keeps what is over for its calls: it must not keep what has read the run.
    source = undefined
    caughtUp.resolve()
    onEnd()
  }

  const standing = isNew ? undefined : await readStanding(log, runId)
  // Only a client that has seen nothing can be spared what was superseded.
  const isFresh = after.seq === 0 && after.index === undefined
  if (standing !== undefined && !isFresh) standing.filter = (entries) => entries
  const wire = numberedWire(agUiObjectsWire, after, {
    entry(entry) {
      calls.note(entry)
      if (entry.seq >= lastSeq) caughtUp.resolve()
    },
    begun: takeLabel,
  })
  const from = after.seq === 0 ? 0 : after.seq + 1
  const wireOptions = { ...options.options, live: true, liveFrom: isNew ? from : 0 }
  const answer = await openAnswer(context, {
    runId,
    wire,
    options: wireOptions,
    from,
    policy,
    ...compact({ standing }),
  })
  let source: typeof answer.source | undefined = answer.source
  const ask = () => source?.next(send, fail)

  function send(piece: NumberedEvent<AgUiEvent>[] | undefined): void {
    if (isOver) return
    if (piece === undefined) return finish()
    const events: SentEvent[] = []
    for (const { event, seq, index } of piece) {
      takeLabel(event)
      if (event.type === 'TOOL_CALL_RESULT' && answered?.has(toCallId(event.toolCallId)) === true) continue
      events.push({ event, of, seq, index })
    }
    emit(events)
    drain.whenDrained(ask)
  }

  function fail(error: unknown): void {
    context.onError(error)
    finish()
  }

  return {
    runId,
    threadId,
    get label() {
      return of.runId
    },
    get isOver() {
      return isOver
    },
    calls,
    caughtUp: caughtUp.promise,
    begin: ask,
    leave() {
      source?.cancel()
      finish()
    },
  }
}
