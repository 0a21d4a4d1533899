/**
 * Forks a run: a new run shares the log up to an entry and continues by itself, like a run after a crash at that entry: complete steps are kept,
 * open ones begin again. decisions/0023 has the permitted changes of a fork, and the reasons.
 */
import type { ForkOptions } from './runtime.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { MillraceError } from '../part/error.ts'
import { type Store, threadOf } from '../part/log.ts'
import type { Part } from '../part/part.ts'
import { hasRole, scopedThread, type Role, type RunUser } from '../part/principal.ts'
import type { Entry } from '../part/entry.ts'
import { createForkPlaces } from '../fold/fork-places.ts'
import { forkedCode, createRunState, type RunState } from '../engine/state.ts'
import type { Clock } from '../engine/run-clock.ts'
import { readStored } from '../engine/stored-pipeline.ts'
import { parsePipeline } from '../pipeline/parse.ts'
import type { Pipeline, Step } from '../pipeline/pipeline.ts'
import { toolGroupsOf } from '../pipeline/tool-groups.ts'
import { acceptForeign } from './foreign-run.ts'
import { closingError, unknownAgent, unknownRun } from './runtime-errors.ts'
import type { ActiveRuns } from './active-runs.ts'
import type { AgentSource, Agent } from './runtime.ts'
import type { Supervisor } from './supervisor.ts'
import { parentPath } from '../part/path.ts'
import { containers } from '../engine/step.ts'
import { checkRunInput } from './check-run-input.ts'

/** How a fork continues. */
export interface ForkPlan {
  pipeline: Pipeline
  first: Part[]
}

export interface ForkContext {
  store: Store
  agents: AgentSource
  supervisor: Supervisor
  activeRuns: ActiveRuns
  clock: Clock
  shutdown: AbortSignal
  newRunId(): string
}

export interface Forked {
  runId: string
  threadId: string
  joined: boolean
}

/** Resolves when the first entries of the fork are stored. */
export async function forkRun(context: ForkContext, source: string, options: ForkOptions): Promise<Forked> {
  const { store, supervisor, activeRuns, clock, shutdown, newRunId } = context
  const { agents = context.agents } = options
  if (shutdown.aborted) throw closingError()
  const row = await store.runs.get(source)
  if (row === undefined) throw unknownRun(source)
  const places = createForkPlaces()
  const state = createRunState()
  const permits = createPermits()
  let at = options.at
  if (!Number.isSafeInteger(at) || at < 1 || at > row.lastSeq) {
    for await (const batch of store.log.read(source)) for (const entry of batch) places.apply(entry)
    throw badPlace(options.at, `between 1 and ${row.lastSeq}, the last entry`, places.near(options.at))
  }
  for await (const batch of store.log.read(source, { before: at + 1 })) {
    for (const entry of batch) {
      // A run that continues cannot share the end.
      if (entry.type === 'run-end') at = entry.seq - 1
      else {
        state.apply(entry)
        places.apply(entry)
        permits.apply(entry)
      }
    }
  }
  permits.check(options.user, at)
  const plan = planFork({ agents, clock }, { source, at, state, before: places.before }, options)
  const runId = options.runId ?? newRunId()
  const { user } = options
  const forked = { runId, threadId: scopedThread(threadOf(runId), user) }
  if ((await store.runs.get(runId)) !== undefined) {
    // Rejects if the run is not this fork.
    await store.log.fork(source, at, runId, undefined, user)
    return { ...forked, joined: true }
  }
  const agent = agents.get(options.agent ?? '')?.id ?? state.start!.agent
  if (plan !== undefined) await activeRuns.enter(runId, agent, plan.pipeline, user)
  try {
    // Its own entries are later than the shared ones, even if the clock was set back.
    await store.log.fork(source, at, runId, Math.max(clock.wall(), state.lastTimestamp), user)
    await supervisor.resumeFork(runId, plan)
  } finally {
    // The claim failed, or another process was faster.
    if (!supervisor.owns(runId)) activeRuns.leave(runId)
  }
  return { ...forked, joined: false }
}

/**
 * Approvals that need a role, of calls that have no result yet: the fork would run such a call a second time, on the word that was given for the
 * first. Who has no such role cannot fork there.
 */
function createPermits() {
  const asked = new Map<string, { seq: number; toolCallId: string; roles: readonly Role[] }>()
  const given = new Map<string, { seq: number; roles: readonly Role[] }>()
  return {
    apply(entry: Entry): void {
      if (entry.type === 'request' && entry.kind === 'approval' && entry.roles !== undefined) {
        asked.set(entry.requestId, { seq: entry.seq, toolCallId: entry.toolCallId, roles: entry.roles })
      } else if (entry.type === 'response' && entry.answer?.kind === 'approval' && entry.answer.approved) {
        const request = asked.get(entry.requestId)
        if (request !== undefined) given.set(request.toolCallId, request)
      } else if (entry.type === 'tool-result' && entry.preliminary !== true) given.delete(entry.toolCallId)
    },
    check(user: RunUser | undefined, at: number): void {
      if (user === undefined) return
      for (const { seq, roles } of given.values()) {
        if (hasRole(user.roles ?? [], roles)) continue
        const cure = `Fork before it is asked: at ${seq - 1}.`
        throw fail(
          `By entry ${at} a call was approved that needs the role ${roles.join(' or ')} and has no result. ${cure}`,
        )
      }
    },
  }
}

function badPlace(at: number, what: string, near: readonly number[]): MillraceError {
  const places = near.length === 0 ? '' : ` Complete steps near it end at ${near.join(', ')}.`
  return new MillraceError('bad-input', `"at" must be ${what}, not ${at}.${places}`, { status: 400 })
}

interface Point {
  source: string
  at: number
  state: RunState
  /** The `seq` of the last entry before a step started. */
  before(step: string): number | undefined
}

/** Undefined if the fork waits for the same replies as its source at that point. */
function planFork(
  { agents, clock }: Pick<ForkContext, 'agents' | 'clock'>,
  point: Point,
  options: ForkOptions,
): ForkPlan | undefined {
  const { source, at, state } = point
  const { input, agent: wanted, protocol = 'library' } = options
  const named = wanted === undefined ? undefined : agents.get(wanted)
  if (wanted !== undefined && named === undefined) throw unknownAgent(wanted, agents)
  const text = options.pipeline
  const given = text === undefined ? named : { id: named?.id ?? state.start!.agent, pipeline: parsePipeline(text) }
  const own = readStored(state.start?.pipeline)
  const accepted = state.isForeign ? acceptForeign(agents, { ...point, run: source }, options, given) : undefined
  // An accepted continuation is recorded like a change of the agent.
  const agent = given ?? (accepted && own && { id: accepted.agent, pipeline: own })
  const pipeline = agent?.pipeline ?? own
  if (pipeline === undefined) {
    const cure = 'Name the agent that it should go on as.'
    throw new MillraceError(
      'bad-fork',
      `This version no longer accepts the pipeline in the log of ${source}. ${cure}`,
      {
        status: 400,
      },
    )
  }
  for (const { requestId, step, deadline } of state.open.requests.values()) {
    if (deadline > clock.wall()) continue
    const cure = `Fork at ${point.before(step) ?? 1}, before it is asked.`
    throw new MillraceError('bad-fork', `The time to answer ${requestId} was over long ago. ${cure}`, { status: 400 })
  }
  if (given !== undefined) checkForkAgent(given, own, point)
  const checked = input && checkForkInput(pipeline, input, point)
  const isChanged = checked !== undefined || agent !== undefined
  const { suspended } = state.open
  if (suspended && state.open.requests.size > 0 && !isChanged) return undefined
  const first: Part[] = [
    {
      type: 'warning',
      code: forkedCode,
      message: `This run shares its log with run ${source} up to entry ${at} and goes on from there.`,
    },
  ]
  if (isChanged && !suspended) first.push({ type: 'suspend', requests: [] })
  if (isChanged || suspended) {
    const isOwn = text !== undefined && { ownPipeline: true }
    const change = agent && { agent: agent.id, pipeline: agent.pipeline.text, ...isOwn }
    first.push({ type: 'resume', protocol, ...omitUndefined({ input: checked }), ...change })
  }
  return { pipeline, first }
}

/** Checks the changes of a fork: see decisions/0023. Throws `bad-fork`, which names the place at which the change would take effect. */
interface SourcePoint {
  at: number
  state: RunState
  /** The `seq` of the last entry before a step started. */
  before(step: string): number | undefined
}

/** The steps of the file that have started, by their paths: `main/<id>` and `after/<id>`. */
function started({ state }: SourcePoint): string[] {
  return [...state.steps.keys()].filter((path) => parentPath(parentPath(path)) === '' && parentPath(path) !== '')
}

function fail(message: string): MillraceError {
  return new MillraceError('bad-fork', message, { status: 400 })
}

/** Checks that the agent has the steps that have started: their values come from the log. */
export function checkForkAgent({ id, pipeline }: Agent, own: Pipeline | undefined, point: SourcePoint): void {
  for (const path of started(point)) {
    const name = path.slice(path.indexOf('/') + 1)
    const step = find(pipeline, path, name)
    const before = own && find(own, path, name)
    const cure = `Fork at ${point.before(path) ?? 1}, before it, or start the agent with: millrace run ${id}`
    if (step === undefined) {
      throw fail(`By entry ${point.at} step "${name}" has started, and the agent "${id}" has no such step. ${cure}`)
    }
    if (before === undefined) continue
    if (step.type !== before.type) {
      throw fail(`By entry ${point.at} step "${name}" has started as ${before.type}, and is ${step.type} now. ${cure}`)
    }
    if (answering(step) !== answering(before)) {
      throw fail(
        `By entry ${point.at} step "${name}" has started, and "stream" or "output" is not the same now. ${cure}`,
      )
    }
    // Open calls need their tools unchanged.
    if (point.state.open.steps.has(path) && toolsOf(step) !== toolsOf(before)) {
      throw fail(`At entry ${point.at} step "${name}" is in the middle, and its tools are not the same now. ${cure}`)
    }
    // Inner steps are found by their paths, and the value is computed again from them.
    if (containers.has(step.type) && !isSame(step, before)) {
      throw fail(`By entry ${point.at} step "${name}" has started, and what is inside it is not the same now. ${cure}`)
    }
  }
}

/** The settings of a step that its `step-start` records about its answer. */
function answering({ type, config }: Step): string {
  const { stream, output, answer } = config as { stream?: unknown; output?: unknown; answer?: unknown }
  return JSON.stringify([type, stream, output !== undefined, answer])
}

/** Of an open script also its text: it would make other calls. */
function toolsOf(step: Step): string {
  const { type, config } = step
  const code = type === 'script' ? [config.code, config.input] : []
  return JSON.stringify([type, toolGroupsOf(step).map(({ tools, agentTools }) => [tools, agentTools]), ...code])
}

function find({ workflow, after }: Pipeline, path: string, id: string): Step | undefined {
  return (path.startsWith('after/') ? after : workflow).find((step) => step.id === id)
}

/** Compares without line numbers. */
function isSame(a: Step, b: Step): boolean {
  const text = (step: Step) => JSON.stringify(step, (key, value: unknown) => (key === 'line' ? undefined : value))
  return text(a) === text(b)
}

/** The input for later steps. Also throws `bad-input` for input that the agent does not accept. */
function checkForkInput(
  pipeline: Pipeline,
  given: Record<string, unknown>,
  point: SourcePoint,
): Record<string, unknown> {
  const { state, at } = point
  const merged = checkRunInput(pipeline, { ...state.input, ...given })
  const all = [...pipeline.workflow.map(({ id }) => `main/${id}`), ...pipeline.after.map(({ id }) => `after/${id}`)]
  if (all.every((path) => state.finished.has(path))) {
    throw fail(
      `By entry ${at} every step has finished, so another input changes nothing. Fork earlier: at 1, all begin.`,
    )
  }
  const telling = 'messages' in given ? openLoop(state) : undefined
  if (telling !== undefined) {
    const cure = `Fork at ${point.before(telling) ?? 1}, before it.`
    throw fail(`By entry ${at} step ${telling} has told its model the messages already. ${cure}`)
  }
  return Object.fromEntries(Object.entries(merged).filter(([key]) => Object.hasOwn(given, key)))
}

/** A step that is between its model calls. */
function openLoop({ open, loops }: RunState): string | undefined {
  return [...open.steps.keys()].find((path) => loops.get(path)?.base !== undefined)
}
