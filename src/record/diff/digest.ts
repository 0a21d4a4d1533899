/** The digest of a run, for a comparison side by side. */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { Usage } from '../../part/usage.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { textHash } from '../../part/text-hash.ts'
import { kindOf } from '../../part/step-kind.ts'
import { sharedTo, startOf } from '../../fold/run-view.ts'
import { callKey } from '../../fold/open-items.ts'

/** A tool call and its result, as JSON. */
export interface ToolDigest {
  name: string
  input: string
  output?: string
  isError?: boolean
}

/** The digest of a run. */
export interface RunDigest {
  id: string
  agent: string
  /** The text of the agent, as it was in the end: a fork may go on with another one. */
  pipeline: string
  outcome: string
  entries: number
  /** Of all model calls, in order; cut off after 100,000 characters. */
  text: string
  tools: ToolDigest[]
  /** Steps of the pipelines, by path, with their types. */
  steps: string[]
  modelCalls: number
  usage?: Usage
  cost?: number
  /** ms. Of a fork: from when it was forked. */
  duration: number
  /** ms. Of a fork: how long its source had taken up to there. */
  takenOver?: number
  error?: string
}

export interface Digest {
  apply(entry: Entry): void
  read(): RunDigest
  /** A hash of what each model call was told. What the models said themselves is not in it. */
  told(): string[]
}

const mostText = 100_000
const mostListed = 1000
const mostValue = 4000

export function createDigest(id: string): Digest {
  /** By block, in the order of their starts: parallel ones alternate. */
  const texts: string[][] = []
  const speaking = new Map<string, string[]>()
  let length = 0
  const tools: ToolDigest[] = []
  const open = new Map<string, ToolDigest>()
  const found = { agent: '', pipeline: '', outcome: 'running', entries: 0, modelCalls: 0 }
  const steps: string[] = []
  let ended: Pick<RunDigest, 'usage' | 'cost' | 'error'> = {}
  let first = 0
  let last = 0
  let shared = 0
  let began = 0
  let takenOver: number | undefined
  /** By step: a second attempt takes the place of the first. */
  const told = new Map<string, string>()

  function apply(entry: Entry): void {
    found.entries++
    if (entry.type === 'run-start') {
      shared = sharedTo(entry)
      began = entry.timestamp
    }
    first ||= entry.type === 'run-start' ? startOf(entry) : entry.timestamp
    last = entry.timestamp
    if (entry.seq <= shared) takenOver = last - began
    switch (entry.type) {
      case 'run-start':
        found.agent = entry.agent
        found.pipeline = entry.pipeline
        return
      case 'prompt':
        told.set(entry.step, textHash(toldBy(entry)))
        return
      case 'text-delta':
        if (length < mostText) speaking.get(blockOf(entry))?.push(entry.delta.slice(0, mostText - length))
        length += entry.delta.length
        return
      case 'text-start': {
        if (length >= mostText) return
        const pieces: string[] = []
        texts.push(pieces)
        speaking.set(blockOf(entry), pieces)
        return
      }
      case 'text-end':
        speaking.delete(blockOf(entry))
        return
      case 'step-start': {
        const kind = kindOf(entry)
        if (kind === 'model-call') found.modelCalls++
        else if (steps.length < mostListed) steps.push(`${entry.step} (${entry.toolName ?? kind})`)
        return
      }
      case 'tool-call': {
        if (tools.length >= mostListed) return
        const tool: ToolDigest = { name: entry.toolName, input: entry.input.slice(0, mostValue) }
        tools.push(tool)
        open.set(callKey(entry.step, entry.toolCallId), tool)
        return
      }
      case 'tool-result': {
        const tool = open.get(callKey(entry.step, entry.toolCallId))
        if (tool === undefined || entry.preliminary === true) return
        tool.output = JSON.stringify(entry.result)?.slice(0, mostValue) ?? ''
        if (entry.isError === true) tool.isError = true
        return
      }
      case 'suspend':
        found.outcome = 'suspended'
        return
      case 'resume':
        found.outcome = 'running'
        found.agent = entry.agent ?? found.agent
        found.pipeline = entry.pipeline ?? found.pipeline
        return
      case 'run-end':
        found.outcome = entry.outcome
        ended = omitUndefined({ usage: entry.usage, cost: entry.cost, error: entry.error?.message })
        return
      default:
    }
  }

  return {
    apply,
    told: () => [...told.values()],
    read: () => ({
      id,
      ...found,
      text: texts
        .map((pieces) => pieces.join(''))
        .join('\n')
        .trimEnd(),
      tools,
      steps,
      ...ended,
      duration: Math.max(0, last - first),
      ...omitUndefined({ takenOver }),
    }),
  }
}

/** Without the ids of calls, which differ in every run. */
function toldBy({ stage, model, system, messages, tools, settings }: EntryOf<'prompt'>): string {
  return JSON.stringify({ stage, model, system, messages, tools, settings }, (name, value: unknown) =>
    name === 'toolCallId' ? undefined : value,
  )
}

function blockOf({ step, id }: { step: string; id: string }): string {
  return `${step}\n${id}`
}
