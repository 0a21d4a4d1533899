/**
 * Runs that were recorded elsewhere. Their logs are data: they are read, replayed and compared, but nothing that they name runs because they
 * name it. Every place that goes on with a run from its log asks here: forks and answers (`acceptForeign`), and whoever claims a run
 * (`fitsAccepted`). What was decided is in the `resume` with which the run goes on here.
 */
import type { Consent } from './runtime.ts'
import { MillraceError } from '../part/error.ts'
import type { Log } from '../part/log.ts'
import { createForkPlaces } from '../fold/fork-places.ts'
import { createRunState, type RunState } from '../engine/state.ts'
import { readStored } from '../engine/stored-pipeline.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import { listNames } from '../pipeline/nearest.ts'
import { listedAgents, unknownAgent } from './runtime-errors.ts'
import type { AgentSource } from './runtime.ts'

/** With what a foreign run goes on. Posted with the answer that lets it go on. */
export interface Accepted {
  agent: string
  pipeline: string
  /** Texts of called agents in the recording that may run. */
  calls: string[]
  /** Calls of tools may run that were approved elsewhere. */
  trust?: true
}

/** The recording up to the place at which it goes on. */
export interface Recorded {
  run: string
  state: RunState
  /** The last entry before a step started. */
  before(step: string): number | undefined
}

/** The whole recording of a run. */
export async function readRecorded(log: Log, run: string): Promise<Recorded> {
  const state = createRunState()
  const places = createForkPlaces()
  for await (const batch of log.read(run)) {
    for (const entry of batch) {
      state.apply(entry)
      places.apply(entry)
    }
  }
  return { run, state, before: places.before }
}

/**
 * With what a foreign run may go on here. Throws `foreign-run`, which says what is the matter, and the cure. `named`: the caller says which text
 * it goes on with, so that of the recording does not count.
 */
export function acceptForeign(
  agents: AgentSource,
  { run, state, before }: Recorded,
  { agent, trust = false }: Consent,
  named = agent === undefined ? undefined : agents.get(agent),
): Accepted {
  if (agent !== undefined && named === undefined) throw unknownAgent(agent, agents)
  const start = state.start!
  const loaded = new Map(agents.list().map(({ id, pipeline }) => [pipeline.text, id]))
  const calls = calledTexts(state)
  if (!trust) {
    if (named === undefined && !loaded.has(start.pipeline)) {
      throw refused(run, `the agent in its log, ${quoted(start.agent)}, is not the agent of that text here`, agents)
    }
    for (const [step, text] of calls) {
      if (!loaded.has(text))
        throw refused(run, `step ${step} calls an agent that is not the same here`, agents, before(step))
    }
    const call = decidedElsewhere(state)
    if (call !== undefined) {
      const what = `its recording says that the tool ${quoted(call.toolName)} may run, and has no result of it`
      throw refused(run, what, agents, before(call.step))
    }
  }
  const own = agents.get(start.agent)?.pipeline.text === start.pipeline ? start.agent : loaded.get(start.pipeline)
  return {
    agent: named?.id ?? own ?? start.agent,
    pipeline: named?.pipeline.text ?? start.pipeline,
    calls: [...new Set(calls.map(([, text]) => text))],
    ...(trust && { trust }),
  }
}

/**
 * Whether what was accepted is what the log has now: the run may have been deleted since, and another one imported under its id. Returns the
 * pipeline with which it goes on.
 */
export function fitsAccepted(state: RunState, accepted: Accepted | undefined): Pipeline | undefined {
  if (accepted === undefined) return undefined
  const known = new Set(accepted.calls)
  if (!calledTexts(state).every(([, text]) => known.has(text))) return undefined
  return accepted.trust === true || decidedElsewhere(state) === undefined ? readStored(accepted.pipeline) : undefined
}

/** Why a foreign run ends that nobody here has let go on. */
export const notAccepted = 'It was recorded elsewhere, and nobody here has let it go on.'

/** Also those of calls that have finished: their steps are walked once more for their values. */
function calledTexts({ calledPipelines }: RunState): [step: string, text: string][] {
  return [...calledPipelines]
}

/**
 * A call of a tool that would run with nobody here asked, because it was approved or begun where it was recorded. One that nobody was asked
 * about is asked about here, if the agent wants that.
 */
function decidedElsewhere(state: RunState): { toolName: string; step: string } | undefined {
  for (const { list } of state.toolLoops()) {
    for (const { path, calls } of list) {
      for (const { result, response, startedAt, approvalAt, toolName } of calls) {
        const isDecided = response !== undefined || startedAt !== undefined || state.finished.has(approvalAt ?? '')
        if (result === undefined && isDecided) return { toolName, step: path }
      }
    }
  }
  return undefined
}

function refused(run: string, why: string, agents: AgentSource, before?: number): MillraceError {
  const names = listNames(listedAgents(agents).map(({ id }) => id))
  const earlier = before === undefined ? '' : `fork it at ${before}, before that; `
  const named = before === undefined ? `name one of the agents here with agentId (${names}); ` : ''
  const cure = `To go on with it here, ${earlier}${named}or, if you may edit agents here, read its log and pass trust: true.`
  return new MillraceError('foreign-run', `Run ${run} was recorded elsewhere, and ${why}. ${cure}`, { status: 403 })
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 200))
}
