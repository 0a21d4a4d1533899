/**
 * A runtime as one principal may use it: it starts runs in its own name, and reads, stops and answers only those that `decide` allows. Routes and
 * sockets that work with it need no checks of their own: what is not visible does not exist.
 */
import { MillraceError, type ErrorValue } from '../part/error.ts'
import type { Entry } from '../part/entry.ts'
import type { Log, RunRow } from '../part/log.ts'
import { runUserOf, scopedThread, type Principal } from '../part/principal.ts'
import { unknownAgent, unknownRun } from '../runtime/runtime-errors.ts'
import type { Reply } from '../part/request-part.ts'
import type { Agent, AgentSource, Answered, Run, Runtime, StartOptions, Wake } from '../runtime/runtime.ts'
import { decide, mayUse, visibleTo, type Action } from './decide.ts'
import { notAllowed, rowFor, scopeStore } from './scope-store.ts'

export interface ScopeOptions {
  /** Calls back once when the principal's open streams must end. Returns a function that stops waiting. */
  onExpired?: (principal: Principal, end: (error: ErrorValue) => void) => () => void
  /** Called when it has stopped a run or answered requests of one. `isTurn`: by a turn of a conversation, not by name. */
  onDone?: (action: 'runs.stop' | 'runs.answer', run: RunRow, isTurn: boolean) => void
}

/** The whole runtime for a principal that may do everything, and whose runs belong to no one. */
export function scopeRuntime(base: Runtime, principal: Principal, { onExpired, onDone }: ScopeOptions = {}): Runtime {
  const user = runUserOf(principal)
  const isWhole = Object.keys(visibleTo(principal)).length === 0 && principal.agents === undefined
  if (user === undefined && isWhole && principal.key === undefined) return base
  const agents = scopeAgents(base.agents, principal)
  const store = isWhole ? base.store : scopeStore(base.store, principal)
  const actor = user && { id: user.id, ...pick(user) }

  async function existing(run: string, action: Action): Promise<RunRow> {
    const row = await rowFor(base.store, principal, action, run)
    if (row === undefined) throw unknownRun(run)
    return row
  }

  function usable(agentId: string): Agent {
    if (decide(principal, 'runs.start') !== 'allow') throw notAllowed('runs.start')
    const agent = agents.get(agentId)
    if (agent === undefined) throw unknownAgent(agentId, agents)
    return agent
  }

  /** Only a run of its own can be continued in its thread. */
  async function checkPrevious(options: StartOptions): Promise<void> {
    const { previousRunId } = options
    if (previousRunId == null) return
    const row = await rowFor(base.store, principal, 'runs.read', previousRunId)
    if (row !== undefined && (row.owner ?? '') === principal.id && (row.tenant ?? '') === (principal.tenant ?? ''))
      return
    const cure = 'List those of a thread with GET /api/threads/<id>.'
    throw new MillraceError('bad-input', `previousRunId names no run: ${previousRunId}. ${cure}`, { status: 400 })
  }

  const signed = (wake: Wake = {}): Wake => ({ ...wake, agents, roles: principal.roles, ...(actor && { by: actor }) })

  // Its log without what the principal may not see.
  const scoped = (run: Run) => new ScopedRun(run, runtime, isWhole ? run.parts : entriesOf(store.log, run.id))

  const runtime: Runtime = {
    agents,
    tools: base.tools,
    signIns: base.signIns,
    store,
    roles: principal.roles,
    get active() {
      return base.active
    },
    threadId: (id) => scopedThread(id, user),
    async start(agentId, input, options = {}) {
      const { id } = usable(agentId)
      await checkPrevious(options)
      const { threadId } = options
      const run = await base.start(id, input, {
        ...options,
        ...(threadId !== undefined && { threadId: scopedThread(threadId, user) }),
        ...(user && { user }),
      })
      return scoped(run)
    },
    async fork(run, options) {
      const row = await existing(run, 'runs.fork')
      const name = options.agent ?? row.agent
      // A run of an agent that is gone has its text in its log.
      if (principal.agents !== undefined || base.agents.get(name) !== undefined) usable(name)
      return scoped(await base.fork(run, { ...options, agents, ...(user && { user }) }))
    },
    async open(run) {
      const row = await rowFor(base.store, principal, 'runs.read', run)
      const found = row && (await base.open(run))
      return found && scoped(found)
    },
    // It does not check that the run is there, so neither whose it is.
    handle() {
      throw notAllowed('runs.read')
    },
    async stop(run, reason) {
      const row = await existing(run, 'runs.stop')
      await base.stop(run, reason)
      onDone?.('runs.stop', row, false)
    },
    fail: () => 'inactive',
    async answer(run, requestId, answer, wake, consent) {
      const row = await existing(run, 'runs.answer')
      const answered = await base.answer(run, requestId, answer, signed(wake), consent)
      onDone?.('runs.answer', row, false)
      return answered
    },
    async answerAll(run, answers, wake, mcpHeaders) {
      const row = await existing(run, 'runs.answer')
      const counted = await base.answerAll(run, answers, signed(wake), mcpHeaders)
      onDone?.('runs.answer', row, true)
      return counted
    },
    async tell(run, message) {
      const row = await existing(run, 'runs.answer')
      const told = await base.tell(run, { ...message, ...(actor && { by: actor }) })
      onDone?.('runs.answer', row, message.turn === true)
      return told
    },
    async waiting(run) {
      await existing(run, 'runs.read')
      return base.waiting(run)
    },
    async takeBack(run, id) {
      await existing(run, 'runs.answer')
      await base.takeBack(run, id)
    },
    redact: base.redact,
    redactor: base.redactor,
    attach: base.attach,
    onLost(run, tell) {
      const leave = base.onLost(run, tell)
      const forget = onExpired?.(principal, tell)
      return () => {
        leave()
        forget?.()
      }
    },
    recover: refused,
    threadRule: base.threadRule,
    close: refused,
  }
  return runtime
}

/** A run whose stop and replies are the principal's. */
class ScopedRun implements Run {
  readonly id: string
  readonly threadId: string
  readonly joined: boolean
  readonly parts: Run['parts']
  private readonly run: Run
  private readonly runtime: Runtime

  constructor(run: Run, runtime: Runtime, parts: Run['parts']) {
    this.id = run.id
    this.threadId = run.threadId
    this.joined = run.joined
    this.parts = parts
    this.run = run
    this.runtime = runtime
  }

  get result(): Run['result'] {
    return this.run.result
  }

  stop(reason?: string): Promise<void> {
    return this.runtime.stop(this.id, reason)
  }

  answer(requestId: string, answer: Reply): Promise<Answered> {
    return this.runtime.answer(this.id, requestId, answer, { protocol: 'library' })
  }
}

function entriesOf(log: Log, run: string): AsyncIterable<Entry> {
  return {
    async *[Symbol.asyncIterator]() {
      for await (const batch of log.read(run)) yield* batch
    },
  }
}

function pick({ tenant, name }: { tenant?: string; name?: string }) {
  return { ...(tenant !== undefined && { tenant }), ...(name !== undefined && { name }) }
}

// oxlint-disable-next-line typescript/require-await -- a rejection, as all failures of a runtime
async function refused(): Promise<never> {
  throw notAllowed('upkeep')
}

/** Agents that are not open to the principal do not exist for it. */
export function scopeAgents(base: AgentSource, principal: Principal): AgentSource {
  const isOpen = ({ id, pipeline }: Agent) => mayUse(principal, { id, access: pipeline.access })
  return {
    get(id) {
      const agent = base.get(id)
      return agent !== undefined && isOpen(agent) ? agent : undefined
    },
    list: () => base.list().filter(isOpen),
  }
}
