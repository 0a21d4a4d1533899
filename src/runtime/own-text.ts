/**
 * The text with which a run goes on, and what the next run of its conversation has of it. One rule for all ways to start a run: a conversation keeps
 * the YAML that an agent got with a request, until a request brings another one, or says that the agent's file counts again.
 */
import { readStored } from '../engine/stored-pipeline.ts'
import { entryAt } from '../fold/read-view.ts'
import { startSince } from '../fold/start-since.ts'
import type { EntryOf } from '../part/entry.ts'
import { messageOf, MillraceError } from '../part/error.ts'
import type { RunRow, Store } from '../part/log.ts'
import { scopedThread, threadMark } from '../part/principal.ts'
import { parsePipeline } from '../pipeline/parse.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import type { Agent, Runtime, StartOptions } from './runtime.ts'

/**
 * Its start, with the agent and the text with which it goes on: a fork may have changed them. Undefined for a run that was recorded elsewhere and that
 * nobody here has let go on: what it names is not to be started.
 */
export async function startNow({ log }: Pick<Store, 'log'>, run: string): Promise<EntryOf<'run-start'> | undefined> {
  const first = await entryAt(log, run, 1)
  if (first?.type !== 'run-start') return undefined
  const { foreign = 0, forkedFrom } = first
  // No other run changes its text.
  if (foreign === 0 && forkedFrom === undefined) return first
  let start = first
  let isOurs = foreign === 0
  for await (const batch of log.read(run, { types: ['resume'] })) {
    for (const entry of batch) {
      if (entry.type !== 'resume' || entry.agent === undefined || entry.pipeline === undefined) continue
      start = startSince(start, entry)
      isOurs ||= entry.seq > foreign
    }
  }
  return isOurs ? start : undefined
}

/** How a run is started, as far as it decides about the text. */
export type Asked = Pick<StartOptions, 'pipeline' | 'threadId' | 'previousRunId' | 'user'>

/** The YAML that a new run of this agent has instead of the file's: that of the request, or that of the agent's last run in the conversation. */
export async function ownTextOf({ log, runs }: Store, agent: string, asked: Asked): Promise<string | undefined> {
  if (asked.pipeline !== undefined) return asked.pipeline ?? undefined
  const threadId = await threadOf(runs, asked)
  if (threadId === undefined) return undefined
  const [row] = await runs.list({ threadId, agent, limit: 1 })
  const start = row && (await startNow({ log }, row.id))
  return start?.agent === agent && start.ownPipeline === true ? start.pipeline : undefined
}

/** The texts that were read last: one is read several times for a run, and again for each run of its conversation. */
const known = new Map<string, Pipeline>()
const mostKnown = 16

function parsed(text: string): Pipeline {
  const pipeline = known.get(text) ?? parsePipeline(text)
  known.delete(text)
  known.set(text, pipeline)
  const [oldest] = known.keys()
  if (known.size > mostKnown) known.delete(oldest!)
  return pipeline
}

async function threadOf(runs: Store['runs'], { threadId, previousRunId, user }: Asked): Promise<string | undefined> {
  if (threadId !== undefined) return scopedThread(threadId, user)
  const row = previousRunId == null ? undefined : await runs.get(previousRunId)
  // All threads of a user bear the user's mark.
  return row?.threadId.endsWith(threadMark(user)) === true ? row.threadId : undefined
}

/** The agent as a run has it. `own`: it is not that of its file. */
export interface StartedAs extends Agent {
  own: boolean
}

/** Throws `bad-pipeline` for a text with mistakes. */
export async function agentOfStart(store: Store, { id, pipeline }: Agent, asked: Asked): Promise<StartedAs> {
  const text = await ownTextOf(store, id, asked)
  if (text === undefined) return { id, pipeline, own: false }
  try {
    return { id, pipeline: parsed(text), own: true }
  } catch (error) {
    if (asked.pipeline !== undefined) throw error
    const why = `This version no longer accepts the YAML of this conversation: ${messageOf(error)}`
    throw new MillraceError('bad-pipeline', `${why}\nSend "pipeline": null to go on with the file of agent "${id}".`)
  }
}

/** The pipeline with which a run goes on: its own, or that of its agent's file as it is now. */
export async function pipelineOfRun(
  { store, agents }: Pick<Runtime, 'store' | 'agents'>,
  { id, agent }: Pick<RunRow, 'id' | 'agent'>,
): Promise<Pipeline | undefined> {
  const start = await startNow(store, id)
  return start?.ownPipeline === true ? readStored(start.pipeline) : agents.get(agent)?.pipeline
}
