/** The facts of a run's log, for expectations. */
import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import { parseJson } from '../part/json.ts'
import type { RunStatus } from '../part/log.ts'
import { parentPath } from '../part/path.ts'
import { respondTool } from '../part/respond.ts'
import type { Usage } from '../part/usage.ts'
import { foldRun } from '../fold/run-fold.ts'

export interface ToolFact {
  name: string
  input: unknown
}

export interface Facts {
  outcome: RunStatus
  error?: ErrorValue | undefined
  text: string
  /** The output, or the answer's text read as JSON. */
  output: unknown
  tools: ToolFact[]
  /** The paths of the steps that have run. */
  steps: string[]
  /** Model calls and tool calls. */
  calls: number
  usage: Usage
  /** In USD; undefined if a price is unknown. */
  cost?: number | undefined
  seconds: number
}

/** The entries are those of a whole run. */
export function factsOf(entries: readonly Entry[]): Facts {
  const fold = foldRun()
  for (const entry of entries) fold.apply(entry)
  const { status, error, text, output, steps, usage, cost, startedAt, endedAt = startedAt } = fold.view()
  const called = steps.filter(({ kind }) => kind === 'model-call' || kind === 'tool-call' || kind === 'client-tool')
  const routers = new Set(steps.filter(({ kind }) => kind === 'router').map(({ path }) => path))
  const models = called.some(({ kind }) => kind === 'model-call')
  return {
    outcome: status,
    error,
    text,
    output: output ?? (text === '' ? undefined : jsonIn(text)),
    tools: toolsIn(entries, routers),
    steps: steps.map(({ path }) => path),
    calls: called.length,
    usage,
    cost: cost ?? (models ? undefined : 0),
    seconds: Math.max(0, endedAt - startedAt) / 1000,
  }
}

/** The model's calls with the arguments with which they ran: an approval may change them. */
function toolsIn(entries: readonly Entry[], routers: ReadonlySet<string>): ToolFact[] {
  const calls = new Map<string, ToolFact>()
  const found: ToolFact[] = []
  const asked = new Map<string, ToolFact>()
  for (const entry of entries) {
    if (entry.type === 'tool-call') {
      const { toolCallId, toolName: name, step } = entry
      // Handing over is not a call of a tool.
      if (name === respondTool && routers.has(parentPath(step))) continue
      const call = { name, input: inputOf(entry.input) }
      calls.set(toolCallId, call)
      found.push(call)
    } else if (entry.type === 'request' && entry.kind === 'approval') {
      const call = calls.get(entry.toolCallId)
      if (call !== undefined) asked.set(entry.requestId, call)
    } else if (entry.type === 'response' && entry.answer?.kind === 'approval' && entry.answer.input !== undefined) {
      const call = asked.get(entry.requestId)
      if (call !== undefined) call.input = entry.answer.input
    }
  }
  return found
}

function inputOf(text: string): unknown {
  return text.trim() === '' ? {} : (jsonIn(text) ?? text)
}

/** Undefined if the text is not JSON. Models like to put a fence around it. */
export function jsonIn(text: string): unknown {
  const fenced = /^\s*```(?:json)?\s*\n([^]*?)\n```\s*$/u.exec(text)?.[1]
  try {
    return parseJson(fenced ?? text)
  } catch {
    return undefined
  }
}
