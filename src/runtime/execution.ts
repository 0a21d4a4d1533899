/** One execution of a run by this process: from its first entry to its end or suspension. */
import { anySignal } from '../async/any-signal.ts'
import { MillraceError, toErrorValue } from '../part/error.ts'
import { messagesOf, splitInstructions } from '../part/message.ts'
import { unattributed } from '../engine/step-name.ts'
import { execute, type RunnerEnd, type RunnerOptions } from '../engine/runner.ts'
import type { RunAccount } from '../engine/run-account.ts'
import type { NextRun } from '../engine/steering.ts'
import type { RunStart } from '../part/part.ts'
import type { RunState } from '../engine/state.ts'
import { ownPool, secretsIn, type McpHeaders } from '../tools/mcp/own-headers.ts'
import type { Owned, ClaimedWork } from './claim-run.ts'
import { keptOf } from '../fold/read-view.ts'
import { conversation, historyLimit, summarizedHistoryLimit } from './conversation.ts'
import { hasContext } from '../pipeline/context-config.ts'
import { lostError } from './runtime-errors.ts'
import type { RuntimeOptions, TimedOptions } from './runtime-options.ts'

export interface Execution {
  readonly state: RunState
  readonly controller: AbortController
  /** Whether the run continues after a restart of the server. */
  readonly recover: boolean
  /** Settles when its first entry is stored; `moved`: another process had started the run. Rejects if the store fails before. */
  readonly begun: Promise<'stored' | 'moved'>
  readonly end: Promise<RunnerEnd>
  /** Releases the run for its next owner, before its next step. */
  leave(): void
}

export interface ExecutionContext {
  onTurn(): void
  headers?: McpHeaders | undefined
  newRunId(): string
  startNext(before: RunStart, next: NextRun): Promise<void>
}

export function startExecution(
  options: TimedOptions,
  { run, threadId, epoch, state }: Owned,
  { pipeline, first, turn }: Extract<ClaimedWork, { type: 'execute' }>,
  { onTurn, headers = {}, newRunId, startNext }: ExecutionContext,
): Execution {
  const { agents, registry, store, env = {}, secrets = [], clock, graceMs = 300 } = options
  const { secretKeys = [] } = options
  const { openAccount } = options
  const { requestDeadlineMs = 24 * 3600_000, defaultTimeouts = {}, attribute = unattributed } = options
  const begun = Promise.withResolvers<'stored' | 'moved'>()
  // Not every caller awaits it.
  begun.promise.catch(() => undefined)
  let isBegun = false
  const controller = new AbortController()
  let isLeaving = false
  const waiting = turn === undefined ? undefined : new AbortController()
  const start = first.find((part) => part.type === 'run-start') ?? state.start
  const handOver = start?.handOver === true
  const brought = first.flatMap((part) => ('ownHeaders' in part ? (part.ownHeaders ?? []) : []))
  const names = new Set([...state.ownHeaders, ...brought])
  const person = start?.user
  const { signIns } = options
  const personal = signIns && registry.mcp?.people?.poolOf((server) => signIns.source(server, person))
  const mcp = personal ?? registry.mcp
  const own = names.size === 0 || mcp === undefined ? undefined : ownPool(mcp, names, headers)
  let account: RunAccount | undefined
  const runner: RunnerOptions = {
    log: store.log,
    runs: store.runs,
    records: store.records,
    agent: (id) => agents.get(id)?.pipeline,
    turn: async (signal) => turn?.(anySignal([signal, waiting!.signal])),
    onTurn,
    history: async () => {
      const previous = state.start?.previousRunId
      if (previous === undefined) return { messages: [], cut: false }
      const following = splitInstructions(messagesOf(state.input)).rest
      return conversation(store, threadId, previous, {
        following,
        follower: run,
        limit: hasContext(pipeline.workflow) ? summarizedHistoryLimit : historyLimit,
      })
    },
    answeredBefore: async () => {
      const { previousRunId, timestamp = 0 } = state.start ?? {}
      const rows = previousRunId === undefined ? await store.runs.list({ threadId, limit: 20 }) : []
      const before = previousRunId ?? rows.find(({ id, startedAt }) => id !== run && startedAt <= timestamp)?.id
      const row = before === undefined ? undefined : await store.runs.get(before)
      return row && (await keptOf(store, row))?.labels?.['answeredBy']
    },
    registry,
    mcp: own ?? mcp,
    pipeline,
    runId: run,
    threadId,
    epoch,
    state,
    first,
    handOver: handOver || !store.durable,
    canWait: store.durable,
    noClientTools: start?.noClientTools === true,
    env,
    secrets: own === undefined ? secrets : [...secrets, ...secretsIn(headers)],
    secretKeys,
    controller,
    isLeaving: () => isLeaving,
    clock,
    graceMs,
    defaultTimeouts,
    requestDeadlineMs,
    attribute,
    openAccount: openAccount && ((accounted) => (account = openAccount(accounted))),
    newRunId,
    startNext: (next) => startNext({ ...state.start!, input: state.input }, next),
    onStored() {
      if (isBegun) return
      isBegun = true
      begun.resolve('stored')
    },
  }

  const end = attribute({ run }, () => execute(runner)).then(
    async (result): Promise<RunnerEnd> => {
      if (result.type !== 'store-failed' || isBegun || !(await isStartedElsewhere(options, run, result.error)))
        return result
      return { type: 'moved' }
    },
    (error: unknown): RunnerEnd => {
      // The store cannot be read, or Millrace has a bug. Stop everything that still works for this run.
      controller.abort(error)
      void account?.close(false)
      return { type: 'store-failed', error }
    },
  )
  void end.then((result) => {
    void own?.close()
    void personal?.close()
    void mcp?.endRun(run)
    if (result.type !== 'store-failed') return begun.resolve('moved')
    const { code, message } = lostError(result.error)
    begun.reject(new MillraceError(code, message, { status: 503 }))
  })
  const leave = () => {
    isLeaving = true
    waiting?.abort()
  }
  return { state, controller, recover: pipeline.recover, begun: begun.promise, end, leave }
}

/** Whether another process has started the run, because it waited too long for this one. */
async function isStartedElsewhere({ store }: RuntimeOptions, run: string, error: unknown): Promise<boolean> {
  if (toErrorValue(error).code !== 'bad-entry') return false
  return (await store.runs.get(run).catch(() => undefined)) !== undefined
}
