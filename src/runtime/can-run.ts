/**
 * Checks whether this process can execute a run: tools, callbacks, step types, MCP servers, model providers, and called agents. The processes of a
 * fleet may have different versions, configs and agents, so a run continues where its pipeline is valid.
 */
import type { Log, RunRow } from '../part/log.ts'
import { handedOn } from '../engine/state.ts'
import { namesOf, type Registry } from '../engine/registry.ts'
import { callsOf } from '../pipeline/calls.ts'
import { parsePipeline, PipelineError } from '../pipeline/parse.ts'
import type { Known, Pipeline } from '../pipeline/pipeline.ts'
import { readStored } from '../engine/stored-pipeline.ts'
import type { AgentSource } from './runtime.ts'

export interface CanRunContext {
  agents: AgentSource
  registry: Registry
  log: Log
  /** Called once for each reason. */
  warn(message: string): void
}

/** Whether this process may claim the run. */
export type CanRun = (row: RunRow) => Promise<boolean>

/** Maximum number of cached pipelines. */
const remembered = 200

export function createCanRun({ agents, registry, log, warn }: CanRunContext): CanRun {
  let known: Known | undefined
  /** Pipeline text → the missing name, or undefined. */
  const names = new Map<string, string | undefined>()
  const reported = new Set<string>()

  function missingName(text: string): string | undefined {
    if (names.has(text)) return names.get(text)
    if (names.size >= remembered) names.clear()
    const found = firstFault(text, (known ??= namesOf(registry)))
    names.set(text, found)
    return found
  }

  /** The first thing that this process lacks for the pipeline. */
  function missing(text: string, pipeline: Pipeline): string | undefined {
    const name = missingName(text)
    if (name !== undefined) return name
    const agent = [...callsOf(pipeline)].find((id) => agents.get(id) === undefined)
    return agent === undefined ? undefined : `unknown agent "${agent}"`
  }

  return async (row) => {
    const text = await textOf(log, row.id)
    const pipeline = readStored(text)
    // A text that no process can read: any process may end the run.
    if (text === undefined || pipeline === undefined) return true
    const lack = missing(text, pipeline)
    if (lack === undefined || (await isToEnd(log, row, pipeline))) return true
    const message = `Runs of the agent ${row.agent} that lost their process cannot continue here, and wait for another: ${lack}`
    if (reported.size < remembered && !reported.has(message)) warn(message)
    reported.add(message)
    return false
  }
}

/** Undefined for a run that was recorded elsewhere: it continues with another text, or is ended. */
async function textOf(log: Log, run: string): Promise<string | undefined> {
  for await (const [start] of log.read(run, { limit: 1 })) {
    if (start?.type === 'run-start' && start.foreign === undefined) return start.pipeline
  }
  return undefined
}

/** Whether the run only has to be ended, which every process can do: it was stopped, or does not survive its process. */
async function isToEnd(log: Log, { id, status, lastSeq }: RunRow, { recover }: Pipeline): Promise<boolean> {
  for await (const { key } of log.inbox(id)) if (key === 'stop') return true
  if (recover || status === 'suspended') return false
  for await (const batch of log.read(id, { after: lastSeq - 1 }))
    for (const entry of batch) if (entry.type === 'warning' && entry.code === handedOn.code) return false
  return true
}

function firstFault(text: string, known: Known): string | undefined {
  try {
    parsePipeline(text, known)
    return undefined
  } catch (error) {
    return error instanceof PipelineError ? error.faults[0]?.message : undefined
  }
}
