/**
 * Runs a pipeline from the current state of its log until it ends or is suspended. Owns the run's writer and its signal, and is
 * the only place where a run ends; steps only emit parts.
 */
import { MillraceError, toErrorValue } from '../part/error.ts'
import type { EntryOf } from '../part/entry.ts'
import type { InboxMessage, Log, RunIndex } from '../part/log.ts'
import type { Message } from '../part/message.ts'
import type { Part } from '../part/part.ts'
import { keepView } from '../fold/read-view.ts'
import { createRedactor } from '../fold/redact.ts'
import { noUsage } from '../part/usage.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { runLeftover, type Leftover } from './after.ts'
import type { Attribute } from './attribute.ts'
import { createInvoke, tellAbort } from './callbacks.ts'
import { endOutcomes, endRun } from './emit-end.ts'
import { pipelineValue } from './container.ts'
import { readInbox, receive } from './inbox.ts'
import type { Registry } from './registry.ts'
import { limitOfRun } from './limits.ts'
import { handedOn, historyCut, recovered } from './recovery.ts'
import { createRunClock, type Clock } from './run-clock.ts'
import { Suspended, toError, within, type Scope } from './scope.ts'
import { afterGrace } from '../async/with-grace.ts'
import type { RunState } from './state.ts'
import { createStrands } from './strands.ts'
import { limitUnsetRun, type DefaultTimeouts } from './time-limits.ts'
import { runSteps } from './walk.ts'
import { defaultAnswerChars } from '../models/outside/read-limits.ts'
import { createWriter } from './writer.ts'

export interface RunnerOptions {
  log: Log
  runs: RunIndex
  registry: Registry
  pipeline: Pipeline
  runId: string
  threadId: string
  /** Greater than that of every earlier owner. */
  epoch: number
  /** With all stored entries applied. */
  state: RunState
  /** `run-start` for a new run, `resume` for a suspended one, nothing after a crash. */
  first: Part[]
  handOver: boolean
  /** Settles when the run may start in its thread. */
  turn(signal: AbortSignal): Promise<void>
  /** The conversation before this run. `cut`: without its oldest messages. */
  history(): Promise<{ messages: Message[]; cut: boolean }>
  /** The agents that steps may call. */
  agent(id: string): Pipeline | undefined
  env: Readonly<Record<string, string>>
  secrets: readonly string[]
  controller: AbortController
  clock: Clock
  /** ms that the steps of a stopped run have to settle before the run ends without them. */
  graceMs: number
  /** Timeouts for agents that set none. */
  defaultTimeouts: DefaultTimeouts
  /** ms that a client has to answer a request. */
  requestDeadlineMs: number
  attribute: Attribute
  /** Called after each append. */
  onStored(): void
}

/** `lost`: the store failed, so nothing more is recorded, and readers must be told by other means. */
export type RunnerEnd = { type: 'ended' } | { type: 'suspended' } | { type: 'lost'; error: unknown }

/** How the walk over the steps ended. `stopped`: it did not settle within its grace period. */
type Settled =
  | { type: 'done'; value: unknown }
  | { type: 'failed'; error: unknown }
  | { type: 'suspended' }
  | { type: 'stopped' }

export async function execute(options: RunnerOptions): Promise<RunnerEnd> {
  const { log, registry, pipeline, runId, state, controller, graceMs } = options
  const now = createRunClock(options.clock, state.lastTimestamp)
  const { signal } = controller
  let lost: { error: unknown } | undefined
  const waiting = new Map<string, { resolve(response: EntryOf<'response'>): void; reject(error: unknown): void }>()
  const left: Leftover = { deferred: [], afters: [] }
  const settled = Promise.withResolvers<Settled>()
  const leaveInbox = new AbortController()
  /** Set when the outcome is decided. From then on, parts and inbox messages change nothing. */
  let decided: 'suspended' | 'ending' | undefined
  const speaking: Scope['speaking'] = new Map()
  const toldAborts = new Set<string>()
  let ids = 0
  let history: Message[] = []

  const writer = createWriter({
    log,
    run: runId,
    epoch: options.epoch,
    lastSeq: state.lastSeq,
    redactor: options.secrets.length === 0 ? undefined : createRedactor(options.secrets),
    now,
    onEntry(entry) {
      state.apply(entry)
      if (entry.type !== 'response') return
      const waiter = waiting.get(entry.requestId)
      if (waiter === undefined) return
      waiting.delete(entry.requestId)
      strands.go()
      waiter.resolve(entry)
    },
    onStored: options.onStored,
    onFailure(error) {
      lost = { error }
      controller.abort(
        new MillraceError('store-failed', 'The store failed, so the run can no longer be recorded.', { cause: error }),
      )
    },
  })
  const strands = createStrands(() => {
    if (decided !== undefined || signal.aborted) return
    decided = 'suspended'
    writer.emit('', { type: 'suspend', requests: [...state.open.requests.keys()] })
    writer.seal()
    settled.resolve({ type: 'suspended' })
  })
  const giveUp = (error: unknown) => {
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  signal.addEventListener('abort', () => giveUp(signal.reason), { once: true })

  // Emitted before the limits are created, because they count from these parts.
  for (const part of options.first) writer.emit('', part)
  const limit = limitOfRun(options, speaking, now)
  limit?.signal.addEventListener('abort', () => controller.abort(limit.signal.reason), { once: true })

  const scope: Scope = {
    runId,
    threadId: options.threadId,
    state,
    registry,
    store: { log, runs: options.runs },
    input: state.input,
    inputAt(seq) {
      const input = state.inputAt(seq)
      return history.length === 0 ? input : { ...input, messages: [...history, ...((input['messages'] as []) ?? [])] }
    },
    variables: new Map(),
    env: options.env,
    signal,
    handOver: options.handOver,
    requestDeadline: options.requestDeadlineMs,
    now,
    emit: writer.emit,
    ready: writer.ready,
    stored: writer.stored,
    newId: () => `${options.epoch}.${++ids}`,
    fork: strands.fork,
    async request(path, request, stop) {
      stop.throwIfAborted()
      const { requestId } = request
      const answer = Promise.withResolvers<EntryOf<'response'>>()
      waiting.set(requestId, answer)
      if (!state.open.requests.has(requestId)) writer.emit(path, { type: 'request', ...request })
      const giveUpThis = () => {
        // Only for a branch or step that is stopped alone: the end of the run gives up all requests itself.
        if (signal.aborted || !waiting.delete(requestId)) return
        strands.go()
        answer.reject(stop.reason)
      }
      if (stop !== signal) stop.addEventListener('abort', giveUpThis, { once: true })
      strands.rest()
      return answer.promise.finally(() => stop.removeEventListener('abort', giveUpThis))
    },
    limits: limit === undefined ? [] : [limit],
    timeouts: pipeline.timeouts ?? {},
    callerTimeouts: {},
    answerChars: pipeline.limits?.answerChars ?? registry.answerChars ?? defaultAnswerChars,
    defaultTimeouts: options.defaultTimeouts,
    attribute: options.attribute,
    depth: 0,
    agent: options.agent,
    afterwards(inner, called, path) {
      // By then the branch or step that made the call has ended, so its signal and limits do not apply.
      const { input, inputAt, variables, depth, answerChars, timeouts, callerTimeouts } = inner
      left.afters.push({
        scope: within(scope, { input, inputAt, variables, depth, answerChars, timeouts, callerTimeouts }),
        pipeline: called,
        path,
      })
    },
    speaking,
    tellAbort: (root, error) => tellAbort(scope, pipeline, { error, graceMs, root, told: toldAborts }),
    invoke: createInvoke(registry, writer.emit),
    defer: (task) => void left.deferred.push(task),
  }

  const take = (message: InboxMessage) => {
    if (decided === undefined) receive(message, scope, controller)
  }
  // Reads existing messages first, so that a run that is resumed by an answer is not suspended before it sees it.
  const taken = await readInbox(log, runId, 0, undefined, take)
  const inbox = readInbox(log, runId, taken, leaveInbox.signal, take)

  // From here on the run ends even if a step ignores the signal.
  let releaseTime: (() => void) | undefined
  const abort = (error: unknown) => controller.abort(error)
  const begin = async () => {
    await options.turn(signal)
    if (signal.aborted) throw signal.reason
    releaseTime = limitUnsetRun({ timeouts: pipeline.timeouts, defaults: options.defaultTimeouts }, abort)
    if (options.first.length === 0) {
      // Stored before anything else, so that a run that crashes the server at once is counted too.
      writer.emit('', recovered)
      await writer.stored()
    }
    const earlier = await options.history()
    history = earlier.messages
    if (earlier.cut && !state.warnings.has(historyCut.code)) writer.emit('', historyCut)
    return walk(within(scope, { input: scope.inputAt(state.lastSeq) }), pipeline, left)
  }
  const work = begin().then(
    (value) => settled.resolve({ type: 'done', value }),
    (error: unknown) => settled.resolve({ type: 'failed', error }),
  )
  const release = afterGrace(signal, () => settled.resolve({ type: 'stopped' }), graceMs)
  const how = await settled.promise
  release()
  leaveInbox.abort('over')
  limit?.release()
  releaseTime?.()

  if (how.type === 'suspended') {
    giveUp(new Suspended())
    await work
    await inbox
    return close('suspended')
  }

  decided = 'ending'
  await inbox
  if (signal.aborted && toErrorValue(signal.reason).code === 'abandoned') {
    writer.emit('', handedOn)
    writer.seal()
    await writer.stored().catch(() => undefined)
    return { type: 'ended' }
  }
  const error = signal.aborted ? toError(signal.reason) : how.type === 'failed' ? toError(how.error) : undefined
  if (error !== undefined) {
    await tellAbort(scope, pipeline, {
      error,
      aborted: signal.aborted && lost === undefined && endOutcomes.has(error.code),
      graceMs,
      told: toldAborts,
    })
  }
  endRun(scope, error, how.type === 'done' ? how.value : undefined)
  writer.seal()
  giveUp(new Suspended())
  return close('ended')

  async function close(type: 'ended' | 'suspended'): Promise<RunnerEnd> {
    await writer.stored().catch(() => undefined)
    if (lost !== undefined) return { type: 'lost', ...lost }
    await keepView(options.runs, runId, state)
    return { type }
  }
}

/** Runs the whole pipeline and resolves with its value. */
async function walk(scope: Scope, pipeline: Pipeline, left: Leftover): Promise<unknown> {
  const { state } = scope
  const last = await runSteps(scope, pipeline.workflow, 'main', { answers: true, last: true })
  if (last.answer !== undefined && !state.open.answered) {
    scope.emit('', { type: 'answer-end', finishReason: last.answer.finishReason, usage: state.usage ?? noUsage })
  }
  await runLeftover(scope, pipeline, left)
  return pipelineValue(scope, pipeline, last)
}
