/**
 * The runtime owns every run of this process: starts it, wakes it, stops it, ends it truthfully after a crash.
 * A run belongs to the server; a connection is only a cursor into its log.
 */
import type { Entry } from '../part/entry.ts'
import { MillraceError, messageOf, toErrorValue, type ErrorValue } from '../part/error.ts'
import type { RunRow, Store } from '../part/log.ts'
import type { Answer, Outcome, Part } from '../part/part.ts'
import { noUsage, type Usage } from '../part/usage.ts'
import { parsePipeline } from '../pipeline/parse.ts'
import type { BusyPolicy, DisconnectPolicy, HistoryPolicy, Pipeline } from '../pipeline/pipeline.ts'
import { createInvoke, tellAbort } from './callbacks.ts'
import { createDeadlines } from './deadlines.ts'
import { conversation, readView } from './history.ts'
import type { PostedAnswer } from './inbox.ts'
import type { Registry } from './ports.ts'
import { createPresence } from './presence.ts'
import { execute } from './runner.ts'
import { createRunState, type RunState } from './state.ts'
import { createThreadGate } from './threads.ts'
import { missingUsages } from './unfinished.ts'
import { createWriter } from './writer.ts'

export interface Agent {
  id: string
  pipeline: Pipeline
}

/** Where agents come from. `get` finds aliases as well and gives the last good version. */
export interface AgentSource {
  get(id: string): Agent | undefined
  list(): Agent[]
}

export interface RuntimeOptions {
  agents: AgentSource
  registry: Registry
  store: Store
  /** What `$env.NAME` may see. Default: nothing. */
  env?: Readonly<Record<string, string>>
  /** Values that must never be recorded or sent. */
  secrets?: readonly string[]
  now?: () => number
  newRunId?: () => string
  /** ms that a stopped run's steps get to settle; default 300. */
  graceMs?: number
  /** ms that a client has to answer a request before it is closed as unavailable; default 24 hours. */
  requestDeadlineMs?: number
}

export interface StartOptions {
  threadId?: string
  runId?: string
  protocol?: string
  parentRunId?: string
  /** Ids the client gave. */
  labels?: Record<string, string>
  onBusy?: BusyPolicy
  /** `server`: the input's messages are only the new ones; the thread's record says what came before. Default `client`. */
  history?: HistoryPolicy
  handOver?: boolean
  /** A start with a key that this thread has seen joins that key's run. */
  turnKey?: string
}

export interface RunResult {
  id: string
  outcome: Outcome | 'suspended'
  text: string
  output: unknown
  usage: Usage
  error?: ErrorValue
}

export interface Run {
  id: string
  threadId: string
  /** It had begun before it was asked for. */
  joined: boolean
  /** The log from its start, then live, until the run ends. A second reader is a second cursor. */
  parts: AsyncIterable<Entry>
  /** How it ended, or that it is suspended. Never rejects: failure is an outcome. */
  result: Promise<RunResult>
  stop(reason?: string): Promise<void>
  answer(requestId: string, answer: Answer): Promise<Answered>
}

/** `duplicate`: somebody had answered before; `answer` is the one that counts. */
export interface Answered {
  duplicate: boolean
  answer: PostedAnswer
}

export interface Runtime {
  readonly agents: AgentSource
  readonly store: Store
  /** Starts a run; resolves once its `run-start` is stored. In a busy thread it may still wait for its turn. */
  start(agentId: string, input: Record<string, unknown>, options?: StartOptions): Promise<Run>
  open(runId: string): Promise<Run | undefined>
  /** A run by its id, without looking whether it has begun. */
  handle(runId: string, threadId: string): Run
  stop(runId: string, reason?: string): Promise<void>
  answer(runId: string, requestId: string, answer: Answer, wake?: Wake): Promise<Answered>
  /** Leaves several answers for a run and wakes it once. */
  answerAll(runId: string, answers: ReadonlyMap<string, Answer>, wake?: Wake): Promise<void>
  attach(runId: string, policy: DisconnectPolicy): (how?: { finished?: boolean }) => void
  /** The error that readers must be told because the log cannot: settles only when the run's store failed. */
  lost(runId: string): Promise<ErrorValue> | undefined
  /** Ends, or goes on with, the runs that an earlier process left; call it once, before the first start. */
  recover(): Promise<{ resumed: number; interrupted: number }>
  readonly active: number
  /** Takes no more runs, gives the active ones `graceMs` to end, then ends them as `interrupted`. */
  close(graceMs?: number): Promise<void>
}

/** What is new in the request that brought an answer. It is left with the answer, so that whoever wakes the run has it. */
export interface Wake {
  protocol?: string
  labels?: Record<string, string>
  input?: Record<string, unknown>
}

interface Owned {
  id: string
  threadId: string
  epoch: number
  turn?: (signal: AbortSignal) => Promise<void>
}

interface Active {
  state: RunState
  controller: AbortController
  /** Its last entry is stored and it owns the run no more. */
  left: Promise<void>
  /** What follows from that is done too. */
  done: Promise<void>
  lost: PromiseWithResolvers<ErrorValue>
  recover: boolean
}

export function createRuntime(options: RuntimeOptions): Runtime {
  const { agents, registry, store, env = {}, secrets = [], now = Date.now, graceMs = 300 } = options
  const { requestDeadlineMs = 24 * 3600_000 } = options
  const { newRunId = () => `run_${crypto.randomUUID().replaceAll('-', '')}` } = options
  const { log, runs } = store
  const active = new Map<string, Active>()
  /** Runs without an entry yet; each settles when it has one, or when it will never have one. */
  const starting = new Map<string, Promise<void>>()
  const changing = new Map<string, Promise<void>>()
  /** Runs whose store failed and whose log has no end yet. */
  const losses = new Map<string, ErrorValue>()
  const shutdown = new AbortController()

  const presence = createPresence((run, reason) => {
    const open = active.get(run)?.state.open
    // An answer that is complete was not left, and one that waits for its client waits for as long as it takes.
    if (open === undefined || open.answered || open.suspended) return
    void stop(run, reason).catch(() => undefined)
  })
  const gate = createThreadGate({ store, stop, beginning: (run) => starting.get(run) })
  const deadlines = createDeadlines(now, (run, requestId) => {
    void postAnswer(run, requestId, { closed: 'deadline' }).catch(() => undefined)
  })

  /** Runs a pipeline to its end or suspension, as the run's only owner. */
  function own(row: Owned, state: RunState, pipeline: Pipeline, first: Part[]) {
    const controller = new AbortController()
    const lost = Promise.withResolvers<ErrorValue>()
    const handOver = first.some((part) => part.type === 'run-start' && part.handOver) || state.start?.handOver === true
    const { turn = async () => undefined } = row
    const work = execute({
      log,
      turn,
      history: async () => {
        const previous = state.start?.previousRunId
        return previous === undefined ? [] : conversation(store, row.threadId, previous)
      },
      registry,
      pipeline,
      runId: row.id,
      threadId: row.threadId,
      epoch: row.epoch,
      state,
      first,
      handOver: handOver || !store.durable,
      env,
      secrets,
      controller,
      now,
      graceMs,
      requestDeadlineMs,
    })
    const left = work.then((end) => {
      active.delete(row.id)
      presence.forget(row.id)
      if (end.type !== 'lost') return
      const error = lostError(end.error)
      lost.resolve(error)
      // Whoever took the run over goes on with it: it is not ours to end.
      if (error.code === 'stale-writer') return
      losses.set(row.id, error)
      void closeLost(row.id)
    })
    const done = Promise.all([work, left]).then(async ([end]) => {
      if (end.type === 'suspended') await afterSuspend(row.id, state)
    })
    // What is left to do then, the next process does.
    const settled = done.catch(() => undefined)
    active.set(row.id, { state, controller, left, done: settled, lost, recover: pipeline.recover })
  }

  /** One at a time for each run: whatever makes an owner for a run that has none, or writes its end. */
  function alone<T>(run: string, task: () => Promise<T>): Promise<T> {
    const result = (changing.get(run) ?? Promise.resolve()).then(task)
    const settled = result.then(
      () => undefined,
      () => undefined,
    )
    changing.set(run, settled)
    void settled.then(() => changing.get(run) === settled && changing.delete(run))
    return result
  }

  /** When the run's first entry after `seq` is stored; throws when the store refused it. */
  async function begun(run: string, seq = 0): Promise<void> {
    const leave = new AbortController()
    const lost = active.get(run)?.lost.promise.then((error) => {
      throw new MillraceError(error.code, error.message, { status: 503 })
    })
    const first = (async () => {
      for await (const batch of log.read(run, seq, leave.signal)) if (batch.length > 0) return
    })()
    try {
      await Promise.race([first, lost ?? first])
    } finally {
      leave.abort()
    }
  }

  async function afterSuspend(run: string, state: RunState): Promise<void> {
    for (const { requestId, deadline } of state.open.requests.values()) deadlines.set(run, requestId, deadline)
    // An answer, or a stop, that was posted while the run was about to suspend has nobody else to notice it.
    await wake(run)
  }

  async function foldState(run: string): Promise<RunState> {
    const state = createRunState()
    for await (const batch of log.read(run)) for (const entry of batch) state.apply(entry)
    return state
  }

  /** A suspended run goes on with what was left for it: answers and what came with them, or a stop. */
  function wake(run: string): Promise<void> {
    return alone(run, async () => {
      const row = await runs.get(run)
      // While the server closes, what was left for a run waits for the next start.
      if (row?.status !== 'suspended' || shutdown.signal.aborted) return
      // The suspension can be read a moment before its owner has left.
      await active.get(run)?.left
      const state = await foldState(run)
      let how: Wake | undefined
      for await (const { key, message } of log.inbox(run)) {
        if (key === 'stop') return writeEnd(row, state, 'aborted', stopReason(message), 'aborted')
        if (!state.open.requests.has(key.replace(/^answer:/u, ''))) continue
        const { protocol, labels, input } = message as Wake
        how = { ...how, ...defined({ protocol, labels }), ...defined({ input: input && { ...how?.input, ...input } }) }
      }
      if (how === undefined) return
      const pipeline = parsePipeline(state.start!.pipeline)
      deadlines.clear(run)
      own({ ...row, epoch: row.epoch + 1 }, state, pipeline, [{ type: 'resume', protocol: 'api', ...how }])
      await begun(run, row.lastSeq)
    })
  }

  /** What a run that an earlier process left running comes to. */
  function adopt(run: string): Promise<'resumed' | 'interrupted' | undefined> {
    return alone(run, async () => {
      const row = await runs.get(run)
      if (row?.status !== 'running' || active.has(run)) return undefined
      const state = await foldState(run)
      let message = 'The server stopped while the run was active.'
      try {
        const pipeline = parsePipeline(state.start!.pipeline)
        if (pipeline.recover) {
          own({ ...row, epoch: row.epoch + 1, turn: await gate.rejoin(row.threadId, run) }, state, pipeline, [])
          return 'resumed'
        }
      } catch (error) {
        // One run that cannot go on must not keep the server from starting.
        message += ` It cannot go on: ${messageOf(error)}`
      }
      await writeEnd(row, state, 'interrupted', message, 'unavailable')
      return 'interrupted'
    })
  }

  /** Ends a run that has no owner, unless it got one or was ended meanwhile. */
  function end(run: string, code: Outcome, message: string, outcome: 'aborted' | 'unavailable'): Promise<void> {
    return alone(run, async () => {
      const row = await runs.get(run)
      if (row === undefined || hasEnded(row) || active.has(run)) return
      await writeEnd(row, await foldState(run), code, message, outcome)
    })
  }

  async function writeEnd(
    { id: run, epoch }: RunRow,
    state: RunState,
    code: Outcome,
    message: string,
    outcome: 'aborted' | 'unavailable',
  ): Promise<void> {
    const writer = createWriter({
      log,
      run,
      epoch: epoch + 1,
      lastSeq: state.lastSeq,
      redactor: undefined,
      now,
      onEntry: (entry) => state.apply(entry),
      // `stored` below throws it.
      onFailure: () => undefined,
    })
    // After the answer's end a client has been told that all went well; what was cut off came after.
    const answered = state.open.answered
    const error = { code, message }
    if (code === 'aborted') {
      const telling = { error, aborted: true, graceMs }
      const pipeline = parsePipeline(state.start!.pipeline)
      await tellAbort({ state, invoke: createInvoke(registry, writer.emit) }, pipeline, telling)
    }
    for (const { step, part } of missingUsages(state)) writer.emit(step, part)
    for (const { step, part } of state.open.closing({ now: now(), outcome, error })) writer.emit(step, part)
    const { usage, cost } = state
    writer.emit('', {
      type: 'run-end',
      outcome: answered ? 'completed' : code,
      usage: usage ?? noUsage,
      ...(cost === undefined || usage === undefined ? undefined : { cost }),
      ...(answered ? undefined : { error }),
    })
    await writer.stored()
    deadlines.clear(run)
  }

  /** The store refused the run's entries: its log is ended as soon as the store works again, else by the next start. */
  async function closeLost(run: string): Promise<void> {
    for (let delay = 100; !shutdown.signal.aborted; delay = Math.min(delay * 2, 5000)) {
      try {
        await end(run, 'failed', 'The run could not be recorded any more.', 'unavailable')
        losses.delete(run)
        return
      } catch {
        await pause(delay, shutdown.signal)
      }
    }
  }

  async function stop(run: string, reason = 'Stopped.'): Promise<void> {
    const row = await runs.get(run)
    if (row === undefined && !active.has(run) && !starting.has(run)) throw unknownRun(run)
    if (row !== undefined && hasEnded(row)) return
    await log.post(run, 'stop', { reason })
    // An owner, also one that is about to begin, reads it from its inbox.
    if (active.has(run) || starting.has(run)) return
    await end(run, 'aborted', reason, 'aborted')
  }

  async function postAnswer(run: string, requestId: string, message: PostedAnswer): Promise<Answered> {
    const { first, message: winner } = await log.post(run, `answer:${requestId}`, message)
    await wake(run)
    const row = await runs.get(run)
    if (first && row !== undefined && hasEnded(row)) {
      // The run may have ended while the answer was on its way: then the request was closed, not answered.
      const before = await answeredBefore(store, run, requestId)
      if (before !== undefined && 'closed' in before) return { duplicate: true, answer: before }
    }
    return { duplicate: !first, answer: winner as PostedAnswer }
  }

  const runtime: Runtime = {
    agents,
    store,
    get active() {
      return active.size
    },

    async start(agentId, input, startOptions = {}) {
      if (shutdown.signal.aborted) throw closingError()
      const agent = agents.get(agentId)
      if (agent === undefined) throw unknownAgent(agentId, agents)
      const { protocol = 'library', labels, parentRunId, handOver, turnKey } = startOptions
      let { runId = newRunId() } = startOptions
      if (startOptions.runId !== undefined && (await runs.get(runId)) !== undefined) throw runExists(runId)
      const { pipeline } = agent
      const announced = runId
      const begins = Promise.withResolvers<void>()
      void begins.promise.catch(() => undefined)
      starting.set(announced, begins.promise)
      try {
        if (turnKey !== undefined) {
          const place = `thread:${startOptions.threadId ?? ''}`
          const key = `turn:${agent.id}:${turnKey}`
          const winner = ((await log.post(place, key, { run: runId })).message as { run: string }).run
          // The same request again, or twice at once: the second reads the first one's run, or is refused as it was. One
          // that was announced and never began, because its process died in between, is begun now.
          if (winner !== runId) {
            const rival = starting.get(winner)
            await rival
            if (rival !== undefined || active.has(winner) || (await runs.get(winner)) !== undefined) {
              return handle(winner, startOptions.threadId ?? threadOf(winner), true)
            }
            runId = winner
            starting.set(runId, begins.promise)
          }
        }
        const threadId = startOptions.threadId ?? threadOf(runId)
        const policy = pipeline.onBusy ?? startOptions.onBusy ?? 'interrupt'
        const place = startOptions.threadId === undefined ? undefined : await gate.claim(threadId, runId, policy)
        const fromServer = (pipeline.history ?? startOptions.history) === 'server'
        const start: Part = {
          type: 'run-start',
          runId,
          agent: agent.id,
          pipeline: pipeline.text,
          threadId,
          protocol,
          input,
          ...(labels === undefined ? undefined : { labels }),
          ...(parentRunId === undefined ? undefined : { parentRunId }),
          ...(fromServer && place?.previous !== undefined ? { previousRunId: place.previous } : undefined),
          ...(handOver === true ? { handOver } : undefined),
        }
        if (shutdown.signal.aborted) throw closingError()
        const owned: Owned = { id: runId, threadId, epoch: 1 }
        if (place !== undefined) owned.turn = place.wait
        own(owned, createRunState(), pipeline, [start])
        await begun(runId)
        begins.resolve()
        return handle(runId, threadId)
      } catch (error) {
        begins.reject(error)
        throw error
      } finally {
        starting.delete(announced)
        starting.delete(runId)
      }
    },

    async open(runId) {
      const row = await runs.get(runId)
      return row === undefined ? undefined : handle(runId, row.threadId)
    },

    handle,
    stop,

    async answer(runId, requestId, answer, how = {}) {
      const view = await readView(store, runId)
      if (view === undefined) throw unknownRun(runId)
      const message: PostedAnswer = { answer, protocol: 'api', ...how }
      if (!view.requests.some((request) => request.requestId === requestId)) {
        // Not open: answered before, or never asked.
        const before = await answeredBefore(store, runId, requestId)
        if (before === undefined) throw unknownRequest(runId, requestId)
        return { duplicate: true, answer: before }
      }
      return postAnswer(runId, requestId, message)
    },

    async answerAll(runId, answers, how = {}) {
      for (const [requestId, answer] of answers) {
        await log.post(runId, `answer:${requestId}`, { answer, protocol: 'api', ...how } satisfies PostedAnswer)
      }
      await wake(runId)
    },

    attach: presence.attach,
    lost(runId) {
      const known = losses.get(runId)
      return known === undefined ? active.get(runId)?.lost.promise : Promise.resolve(known)
    },

    async recover() {
      const counts = { resumed: 0, interrupted: 0 }
      for (const { id } of await all(store, 'running')) {
        const became = await adopt(id)
        if (became !== undefined) counts[became]++
      }
      for (const { id } of await all(store, 'suspended')) await afterSuspend(id, await foldState(id))
      return counts
    },

    async close(closeGraceMs = 2000) {
      shutdown.abort()
      deadlines.close()
      const work = Promise.all([...active.values()].map(({ done }) => done))
      let timer: ReturnType<typeof setTimeout> | undefined
      await Promise.race([work, new Promise((resolve) => (timer = setTimeout(resolve, closeGraceMs)))])
      clearTimeout(timer)
      for (const { controller, recover } of active.values()) {
        // A run that may go on after a crash may go on after a restart: its log is left as it stands.
        const code = recover ? 'abandoned' : 'interrupted'
        controller.abort(new MillraceError(code, 'The server is shutting down.'))
      }
      await work
      await Promise.all(changing.values())
      await store.close()
    },
  }

  function handle(id: string, threadId: string, joined = false): Run {
    let result: Promise<RunResult> | undefined
    return {
      id,
      threadId,
      joined,
      parts: { [Symbol.asyncIterator]: () => flatten(log.read(id, 0, shutdown.signal)) },
      get result() {
        return (result ??= resultOf(id))
      },
      stop: (reason) => stop(id, reason),
      answer: (requestId, answer) => runtime.answer(id, requestId, answer, { protocol: 'library' }),
    }
  }

  async function resultOf(run: string): Promise<RunResult> {
    // A run that was answered while it suspended has a new owner by then.
    while (active.has(run)) await active.get(run)?.done
    const view = await readView(store, run).catch(() => undefined)
    if (view === undefined || view.status === 'running') {
      const error = { code: 'store-failed', message: 'The run could not be recorded.' }
      return {
        id: run,
        outcome: 'failed',
        text: view?.text ?? '',
        output: undefined,
        usage: view?.usage ?? noUsage,
        error,
      }
    }
    const { status, text, output, usage, error } = view
    return { id: run, outcome: status, text, output, usage, ...(error === undefined ? undefined : { error }) }
  }

  return runtime
}

function lostError(error: unknown): ErrorValue {
  const { code, message } = toErrorValue(error, 'store-failed')
  // What a broken disk or database says is for the server's log, not for a client.
  return error instanceof MillraceError ? { code, message } : { code, message: 'The run could not be recorded.' }
}

function stopReason(message: unknown): string {
  return (message as { reason?: string } | null)?.reason ?? 'Stopped.'
}

function defined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as never
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    timer.unref?.()
    signal.addEventListener('abort', done, { once: true })
    function done(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
  })
}

/** A run that belongs to no conversation has a thread of its own. */
function threadOf(runId: string): string {
  return `thread_${runId.replace(/^run_/u, '')}`
}

async function* flatten(batches: AsyncIterable<Entry[]>): AsyncGenerator<Entry> {
  for await (const batch of batches) yield* batch
}

async function all({ runs }: Store, status: 'running' | 'suspended'): Promise<RunRow[]> {
  const rows: RunRow[] = []
  for (;;) {
    const before = rows.at(-1)?.id
    const page = await runs.list({ status, limit: 200, ...(before === undefined ? undefined : { before }) })
    rows.push(...page)
    if (page.length < 200) return rows
  }
}

async function answeredBefore({ log }: Store, run: string, requestId: string): Promise<PostedAnswer | undefined> {
  for await (const batch of log.read(run)) {
    for (const entry of batch) {
      if (entry.type !== 'response' || entry.requestId !== requestId) continue
      const { answer, protocol = 'api', reason = 'closed' } = entry
      return answer === undefined ? { closed: reason } : { answer, protocol }
    }
  }
  return undefined
}

function closingError(): MillraceError {
  return new MillraceError('closing', 'The server is shutting down; try again in a moment.', { status: 503 })
}

function unknownRun(run: string): MillraceError {
  return new MillraceError('unknown-run', `There is no run ${run}.`, { status: 404 })
}

function runExists(run: string): MillraceError {
  const cure = 'Leave the id out to get a new one.'
  return new MillraceError('run-exists', `There is a run ${run} already. ${cure}`, { status: 409 })
}

function hasEnded({ status }: RunRow): boolean {
  return status !== 'running' && status !== 'suspended'
}

function unknownRequest(run: string, requestId: string): MillraceError {
  return new MillraceError('unknown-request', `Run ${run} has no request ${requestId}.`, { status: 404 })
}

function unknownAgent(id: string, agents: AgentSource): MillraceError {
  const known = agents
    .list()
    .map((agent) => agent.id)
    .join(', ')
  return new MillraceError('unknown-agent', `There is no agent "${id}". Known agents: ${known || 'none'}.`, {
    status: 404,
  })
}
