/** The scope of a run's outermost steps. */
import { compact } from '../part/compact.ts'
import type { Message } from '../part/message.ts'
import { LateSet } from '../fold/late-map.ts'
import { defaultAnswerChars, defaultToolCalls } from '../models/outside/read-limits.ts'
import type { Leftover } from './after.ts'
import type { Gate } from './gate.ts'
import { createInvoke, notifyAbort } from './callbacks.ts'
import type { Limit } from './limits.ts'
import type { PendingRequests } from './pending-requests.ts'
import type { RunnerOptions } from './runner.ts'
import { within, type Scope } from './scope.ts'
import type { Strands } from './strands.ts'
import type { Writer } from './writer.ts'

export interface ScopeParts {
  writer: Writer
  strands: Strands
  requests: PendingRequests
  gate: Gate
  limit: Limit | undefined
  speaking: Scope['speaking']
  leftover: Leftover
  inputOf: Scope['inputOf']
  now(): number
}

export interface RunScope {
  scope: Scope
  /** Sets the conversation before this run, which is read when the run's turn has come. */
  setHistory(messages: Message[]): void
  /** Calls the callbacks for the end of open model steps. Each is called once. */
  callAbort(options: { error: unknown; aborted?: boolean; root?: string }): Promise<void>
}

export function createRunScope(options: RunnerOptions, parts: ScopeParts): RunScope {
  const { log, registry, pipeline, state, controller, graceMs } = options
  const { writer, strands, requests, gate, limit, leftover } = parts
  const called = new LateSet<string>()
  let ids = 0
  let history: Message[] = []
  const callAbort: RunScope['callAbort'] = (how) => notifyAbort(scope, pipeline, { ...how, graceMs, notified: called })

  const scope: Scope = {
    runId: options.runId,
    threadId: options.threadId,
    state,
    registry,
    mcp: options.mcp,
    store: { log, runs: options.runs, ...compact({ records: options.records }) },
    input: state.input,
    inputAt(seq) {
      const input = state.inputAt(seq)
      return history.length === 0 ? input : { ...input, messages: [...history, ...((input['messages'] as []) ?? [])] }
    },
    variables: new Map(),
    env: options.env,
    signal: controller.signal,
    handOver: options.handOver,
    canWait: options.canWait,
    requestDeadline: options.requestDeadlineMs,
    now: parts.now,
    emit: writer.emit,
    ready: writer.ready,
    stored: writer.stored,
    newId: () => `${options.epoch}.${++ids}`,
    fork: strands.fork,
    pass: gate.pass,
    request: requests.request,
    limits: limit === undefined ? [] : [limit],
    timeouts: pipeline.timeouts ?? {},
    callerTimeouts: {},
    answerChars: pipeline.limits?.answerChars ?? registry.answerChars ?? defaultAnswerChars,
    toolCalls: pipeline.limits?.toolCalls ?? registry.toolCalls ?? defaultToolCalls,
    defaultTimeouts: options.defaultTimeouts,
    attribute: options.attribute,
    depth: 0,
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
    notifyAbort: (root, error) => callAbort({ error, root }),
    invoke: createInvoke(registry, writer.emit),
    defer: (task) => void leftover.deferred.push(task),
  }
  return { scope, callAbort, setHistory: (messages) => void (history = messages) }
}
