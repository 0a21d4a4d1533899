/**
 * Runs a pipeline from the current state of its log until it ends or is suspended. Owns the run's writer and its signal, and is
 * the only place where an active run ends; steps only emit parts.
 */
import { messageOf, MillraceError, toErrorValue } from '../part/error.ts'
import type { InboxMessage, Log, RunIndex } from '../part/log.ts'
import type { Records } from '../part/records.ts'
import { viewOf } from '../fold/read-view.ts'
import { messagesOf, splitInstructions, type Message } from '../part/message.ts'
import type { Part } from '../part/part.ts'
import { createRedactor } from '../fold/redact.ts'
import { noUsage } from '../part/usage.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { runLeftover, type Leftover, runSteps } from './run-steps.ts'
import type { Attribute } from './step-name.ts'
import { agentValue } from './called-agent.ts'
import { pipelineValue, type StepOutcome } from './container.ts'
import { createAgentSlots } from './agent-slots.ts'
import { cancelTasks } from './mcp-task.ts'
import { defaultAgentCalls, defaultParallelAgents } from './agent-tools.ts'
import { endOutcomes, endRun } from './write-end.ts'
import { createBranchCounter, type BranchCounter } from './branch-counter.ts'
import { createPendingRequests, type PendingRequests } from './pending-requests.ts'
import { createGate, type Gate } from './release-gate.ts'
import { readInbox, receive } from './inbox.ts'
import { createSteering, type NextRun, type Steering } from './steering.ts'
import type { Registry } from './registry.ts'
import type { McpPool } from '../tools/mcp/pool.ts'
import { limitOfRun, type Limit, limitUnsetRun, type DefaultTimeouts } from './limits.ts'
import { isMoved, createWriter, type Writer } from './writer.ts'
import { countBeforeEnd, type OpenAccount, type RunAccount } from './run-account.ts'
import { handedOn, historyCut, recovered, type RunState } from './state.ts'
import { createRunClock, type Clock } from './run-clock.ts'
import { Suspended, toError, within, type Scope } from './scope.ts'
import { afterGrace } from '../async/with-grace.ts'
import type { EntryOf } from '../part/entry.ts'
import { parentPath } from '../part/path.ts'
import type { ModelToolCall } from '../fold/reply-messages.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { LazySet } from '../fold/lazy-map.ts'
import { defaultAnswerChars, defaultToolCalls } from '../models/limits/read-limits.ts'
import { createInvoke, notifyAbort } from './callbacks.ts'

export interface RunnerOptions {
  log: Log
  runs: RunIndex
  records?: Records | undefined
  registry: Registry
  mcp: McpPool | undefined
  pipeline: Pipeline
  runId: string
  threadId: string
  /** The epoch of the claim, or 1 for a new run. */
  epoch: number
  /** With all stored entries applied. */
  state: RunState
  /** `run-start` for a new run, `resume` for a suspended one, nothing after a crash. */
  first: Part[]
  handOver: boolean
  canWait: boolean
  /** See `RunStart`. */
  noClientTools: boolean
  /** Settles when the run may start in its thread. */
  turn(signal: AbortSignal): Promise<void>
  /** Called when the run's turn comes. */
  onTurn(): void
  /** The conversation before this run. `cut`: without its oldest messages. */
  history(): Promise<{ messages: Message[]; cut: boolean }>
  /** The agent that has answered the last run of the thread, if it was not the one that was asked. */
  answeredBefore(): Promise<string | undefined>
  /** The agents that steps may call. */
  agent(id: string): Pipeline | undefined
  env: Readonly<Record<string, string>>
  secrets: readonly string[]
  secretKeys: readonly string[]
  controller: AbortController
  /** Whether to release the run to its next owner, before its next step. */
  isLeaving(): boolean
  clock: Clock
  /** ms that the steps of a stopped run have to settle before the run ends without them. */
  graceMs: number
  /** Timeouts for agents that set none. */
  defaultTimeouts: DefaultTimeouts
  /** ms that a client has to reply to a request. */
  requestDeadlineMs: number
  attribute: Attribute
  /** The quotas of whoever started the run. */
  openAccount?: OpenAccount | undefined
  newRunId(): string
  /** Starts a run of the thread after this one, once, however often it is called. */
  startNext(next: NextRun): Promise<void>
  /** Called after each append. */
  onStored(): void
}

/**
 * `handed-on`: released for the next owner, as `isLeaving` or an abort with `abandoned` requests. `moved`: another owner has it already, so nothing
 * more is recorded or reported. `store-failed`: nothing more is recorded, and readers must be notified by other means.
 */
export type RunnerEnd =
  | { type: 'ended' | 'suspended' | 'handed-on' | 'moved' }
  | { type: 'store-failed'; error: unknown }

/** The end of the walk over the steps. `stopped`: it did not settle within its grace period. */
type Settled =
  | { type: 'done'; value: unknown }
  | { type: 'failed'; error: unknown }
  | { type: 'suspended' | 'left' }
  | { type: 'stopped' }

export async function execute(options: RunnerOptions): Promise<RunnerEnd> {
  const { log, pipeline, runId, state, controller, graceMs, secrets, secretKeys, newRunId, startNext } = options
  const now = createRunClock(options.clock, state.lastTimestamp)
  const { signal } = controller
  let account: RunAccount | undefined
  let failure: { error: unknown } | undefined
  const leftover: Leftover = { deferred: [], afters: [] }
  const settled = Promise.withResolvers<Settled>()
  /** Set when the outcome is decided. From then on, parts and inbox messages are ignored. */
  let decided: 'suspended' | 'left' | 'ending' | undefined

  const hidden = createHiddenInputs(state)
  const hides = secrets.length > 0 || secretKeys.length > 0

  const writer = createWriter({
    log,
    run: runId,
    epoch: options.epoch,
    lastSeq: state.lastSeq,
    redactor: hides ? createRedactor(secrets, secretKeys, hidden.next) : undefined,
    now,
    view: () => viewOf(state),
    onEntry(entry) {
      state.apply(entry)
      if (entry.type === 'tool-call') hidden.keep(entry)
      if (entry.type === 'response') requests.resolve(entry)
      if (entry.type === 'usage') account?.noted(entry)
    },
    onStored(seq) {
      account?.stored(seq)
      options.onStored()
    },
    onFailure(error) {
      failure = { error }
      const message = 'The store failed, so the run can no longer be recorded.'
      controller.abort(isMoved(error) ? error : new MillraceError('store-failed', message, { cause: error }))
    },
  })
  const branches = createBranchCounter(() => {
    if (decided !== undefined || signal.aborted) return
    decided = gate.holds() ? 'left' : 'suspended'
    writer.emit('', gate.holds() ? handedOn : { type: 'suspend', requests: [...state.open.requests.keys()] })
    writer.seal()
    settled.resolve({ type: decided })
  })
  const gate = createGate(options.isLeaving, () => branches)
  const requests = createPendingRequests({ state, branches, signal, emit: writer.emit })
  const unwind = () => {
    requests.rejectAll(() => signal.reason)
    gate.rejectAll(() => signal.reason)
  }
  signal.addEventListener('abort', unwind, { once: true })

  // Emitted before the limits are created, because they count from these parts.
  for (const part of options.first) writer.emit('', part)
  const speaking: Scope['speaking'] = new Map()
  const limit = limitOfRun(options, speaking, now)
  const user = state.start?.user
  account = user && options.openAccount?.({ id: runId, user, state, speaking })
  const limits = [limit, account?.limit].filter((each) => each !== undefined)
  for (const each of limits) {
    each.signal.addEventListener('abort', () => controller.abort(each.signal.reason), { once: true })
  }
  const steering = createSteering({ log, run: runId, state, signal, writer, newRunId, startNext })
  const toLogged: Scope['toLogged'] = (part) => {
    return hides ? createRedactor(secrets, secretKeys).redact('', part)[0]! : part
  }
  const { inputOf } = hidden
  const parts = { writer, branches, requests, gate, limits, speaking, leftover, now, inputOf, toLogged, steering }
  const { scope, setHistory, callAbort } = createRunScope(options, parts)

  const onMessage = (message: InboxMessage) => {
    // What comes while the run ends begins the next one.
    if (decided === 'ending' && steering.receive(message)) return
    if (decided === undefined && !steering.receive(message)) receive(message, scope, controller)
  }
  // Reads existing messages first, so that a run is not suspended before it sees the reply that resumed it. A new run can only have been stopped.
  const isNew = options.first[0]?.type === 'run-start'
  const read = isNew ? 0 : await readInbox(log, runId, 0, undefined, onMessage)
  const leaveInbox = new AbortController()
  const inbox = readInbox(log, runId, read, leaveInbox.signal, onMessage)

  // From here on the run ends even if a step ignores the signal.
  let releaseTime: (() => void) | undefined
  const begin = async () => {
    await options.turn(signal)
    if (signal.aborted) throw signal.reason
    const held = gate.pass()
    if (held !== undefined) await held
    options.onTurn()
    const timeouts = { timeouts: pipeline.timeouts, defaults: options.defaultTimeouts }
    releaseTime = limitUnsetRun(timeouts, (error) => controller.abort(error))
    if (options.first.length === 0) {
      // Stored first, so that a run that crashes the server at once is counted, too.
      writer.emit('', recovered)
      await writer.stored()
    }
    const { messages, cut } = await options.history()
    if (account !== undefined) await account.ready
    setHistory(messages)
    if (cut && !state.warnings.has(historyCut.code)) writer.emit('', historyCut)
    const outermost = within(scope, { input: scope.inputAt(state.lastSeq) })
    const last = await runSteps(outermost, pipeline.workflow, 'main', { answers: true, last: true })
    if (last.answer !== undefined && !state.open.answered) {
      writer.emit('', {
        type: 'answer-end',
        finishReason: last.answer.finishReason,
        usage: state.usage ?? noUsage,
      })
    }
    await runLeftover(outermost, pipeline, leftover)
    return runValue(outermost, pipeline, last)
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

  /** Stores the emitted parts, and nothing after them. */
  const finish = async (type: 'ended' | 'suspended' | 'handed-on'): Promise<RunnerEnd> => {
    writer.seal()
    await writer.stored().catch(() => undefined)
    await account?.close(type === 'ended')
    if (failure === undefined) return { type }
    return isMoved(failure.error) ? { type: 'moved' } : { type: 'store-failed', error: failure.error }
  }

  if (how.type === 'suspended' || how.type === 'left') {
    requests.rejectAll(() => new Suspended())
    gate.rejectAll(() => new Suspended())
    await work
    await inbox
    return finish(how.type === 'left' ? 'handed-on' : 'suspended')
  }

  decided = 'ending'
  await inbox
  if (isMoved(signal.reason)) {
    await account?.close(false)
    return { type: 'moved' }
  }
  if (signal.aborted && toErrorValue(signal.reason).code === 'abandoned') {
    writer.emit('', handedOn)
    return finish('handed-on')
  }
  const error = signal.aborted ? toError(signal.reason) : how.type === 'failed' ? toError(how.error) : undefined
  if (error !== undefined) {
    await callAbort({ error, aborted: signal.aborted && failure === undefined && endOutcomes.has(error.code) })
  }
  if (account !== undefined) await countBeforeEnd(account, writer, state)
  await steering.leave(error?.code)
  void cancelTasks(scope)
  endRun(scope, error, how.type === 'done' ? how.value : undefined)
  requests.rejectAll(() => new Suspended())
  return finish('ended')
}

/** The recorded output. A value that does not match `output` fails the run, unless clients have the answer already. */
function runValue(scope: Scope, pipeline: Pipeline, last: StepOutcome): unknown {
  if (pipeline.output === undefined) return pipelineValue(scope, pipeline, last)
  try {
    return agentValue(scope, pipeline, last)
  } catch (error) {
    if (!scope.state.open.answered) throw error
    scope.emit('', { type: 'warning', code: 'bad-output', message: messageOf(error) })
    return undefined
  }
}

/**
 * The original inputs of tool calls that are redacted in the log, for the tools that run in this process. In memory only: after a suspension or a
 * crash, tools get the redacted input.
 */
function createHiddenInputs(state: RunState) {
  const inputs = new WeakMap<ModelToolCall, string>()
  let given: string | undefined
  return {
    /** The input of the call that is recorded next. */
    next: (input: string) => void (given = input),
    /** Must be called after the state has applied the call. */
    keep({ step, toolCallId }: EntryOf<'tool-call'>): void {
      if (given === undefined) return
      const reply = state.loopAt(parentPath(step)).list.findLast(({ path }) => path === step)
      const call = reply?.calls.findLast((each) => each.toolCallId === toolCallId)
      if (call !== undefined) inputs.set(call, given)
      given = undefined
    },
    inputOf: (call: ModelToolCall) => inputs.get(call) ?? call.input,
  }
}

/** The scope of a run's outermost steps. */
interface ScopeParts {
  writer: Writer
  branches: BranchCounter
  requests: PendingRequests
  gate: Gate
  limits: readonly Limit[]
  speaking: Scope['speaking']
  steering: Steering
  leftover: Leftover
  inputOf: Scope['inputOf']
  toLogged: Scope['toLogged']
  now(): number
}

interface RunScope {
  scope: Scope
  /** Sets the conversation before this run, which is read when the run's turn comes. */
  setHistory(messages: Message[]): void
  /** Calls the callbacks for the end of open model steps. Each is called once. */
  callAbort(options: { error: unknown; aborted?: boolean; root?: string }): Promise<void>
}

function createRunScope(options: RunnerOptions, parts: ScopeParts): RunScope {
  const { log, registry, pipeline, state, controller, graceMs } = options
  const { writer, branches, requests, gate, limits, leftover } = parts
  const called = new LazySet<string>()
  let ids = 0
  let history: Message[] = []
  const callAbort: RunScope['callAbort'] = (how) => notifyAbort(scope, pipeline, { ...how, graceMs, notified: called })

  const scope: Scope = {
    runId: options.runId,
    threadId: options.threadId,
    state,
    registry,
    mcp: options.mcp,
    store: { log, runs: options.runs, ...omitUndefined({ records: options.records }) },
    input: state.input,
    inputAt(seq) {
      const input = state.inputAt(seq)
      if (history.length === 0) return input
      const { lead, rest } = splitInstructions(messagesOf(input))
      return { ...input, messages: [...lead, ...history, ...rest] }
    },
    variables: new Map(),
    env: options.env,
    signal: controller.signal,
    handOver: options.handOver,
    canWait: options.canWait,
    ...(options.noClientTools && { cannotAsk: true }),
    requestDeadline: options.requestDeadlineMs,
    now: parts.now,
    emit: writer.emit,
    ready: writer.ready,
    stored: writer.stored,
    newId: () => `${options.epoch}.${++ids}`,
    fork: branches.fork,
    branches,
    pass: gate.pass,
    request: requests.request,
    limits,
    timeouts: pipeline.timeouts ?? {},
    callerTimeouts: {},
    answerChars: pipeline.limits?.answerChars ?? registry.answerChars ?? defaultAnswerChars,
    toolCalls: pipeline.limits?.toolCalls ?? registry.toolCalls ?? defaultToolCalls,
    defaultTimeouts: options.defaultTimeouts,
    attribute: options.attribute,
    depth: 0,
    agentCallLimits: [{ root: '', calls: pipeline.limits?.agentCalls ?? defaultAgentCalls }],
    agentSlots: createAgentSlots(pipeline.limits?.parallelAgents ?? defaultParallelAgents),
    ...(pipeline.sticky === true && { answeredBefore: options.answeredBefore }),
    steering: parts.steering,
    runSteps,
    agent: options.agent,
    afterwards(inner, agent, path) {
      // By then the branch or step that made the call has ended, so its signal and limits do not apply.
      const { input, inputAt, variables, depth, answerChars, toolCalls, timeouts, callerTimeouts } = inner
      leftover.afters.push({
        scope: within(scope, { input, inputAt, variables, depth, answerChars, toolCalls, timeouts, callerTimeouts }),
        pipeline: agent,
        path,
      })
    },
    speaking: parts.speaking,
    inputOf: parts.inputOf,
    toLogged: parts.toLogged,
    notifyAbort: (root, error) => callAbort({ error, root }),
    invoke: createInvoke(registry, writer.emit),
    defer: (task) => void leftover.deferred.push(task),
  }
  return { scope, callAbort, setHistory: (messages) => void (history = messages) }
}
