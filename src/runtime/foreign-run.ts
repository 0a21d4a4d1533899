/**
 * Runs that were recorded elsewhere. Their logs are data: they are read, replayed and compared, but nothing that they name runs on their word.
 * Every continuation of a run from its log is checked here: forks and replies (`acceptForeign`), and claims (`fitsAccepted`). The decision is
 * recorded in the `resume` with which the run continues here.
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

/** The accepted continuation of a foreign run. Posted with the reply that allows it. */
export interface Accepted {
  agent: string
  pipeline: string
  /** Texts of called agents in the recording that may run. */
  calls: string[]
  /** Calls of tools that were approved elsewhere may run. */
  trust?: true
}

/** The recording up to the place at which it continues. */
export interface ForeignRecording {
  run: string
  state: RunState
  /** The `seq` of the last entry before a step started. */
  before(step: string): number | undefined
}

/** The whole recording of a run. */
export async function readRecorded(log: Log, run: string): Promise<ForeignRecording> {
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
 * The continuation that a foreign run may have here. Throws `foreign-run`, with the reason and the cure. `named`: the caller names the text, so the
 * recording's text does not count.
 */
export function acceptForeign(
  agents: AgentSource,
  { run, state, before }: ForeignRecording,
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
 * Whether the accepted continuation fits the current log: the run may have been deleted since, and another one imported under its id. Returns the
 * pipeline with which it continues.
 */
export function fitsAccepted(state: RunState, accepted: Accepted | undefined): Pipeline | undefined {
  if (accepted === undefined) return undefined
  const known = new Set(accepted.calls)
  if (!calledTexts(state).every(([, text]) => known.has(text))) return undefined
  return accepted.trust === true || decidedElsewhere(state) === undefined ? readStored(accepted.pipeline) : undefined
}

/** Why a foreign run ends that was not accepted here. */
export const notAccepted = 'It was recorded elsewhere, and nobody here has let it go on.'

/** Also those of finished calls: their steps are run through again for their values. */
function calledTexts({ calledPipelines }: RunState): [step: string, text: string][] {
  return [...calledPipelines]
}

/**
 * A tool call that would run without a question here, because it was approved or begun where it was recorded. Without such an approval, it is asked
 * about here, if the agent requires that.
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
