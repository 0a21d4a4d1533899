/**
 * Tracks the items that are open at a point of a run, and creates the parts that close them. The grammar uses it to check the order; the
 * runner, to close everything after an abort, an error or a crash; and so do the wires. Deltas cost nothing.
 */
import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { EntryOf } from '../part/entry.ts'
import type { ToolOutcome } from '../part/model-part.ts'
import type { Part } from '../part/part.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { LazyMap } from './lazy-map.ts'

type StepStart = EntryOf<'step-start'>

export interface OpenItems {
  readonly started: boolean
  readonly ended: boolean
  readonly suspended: boolean
  readonly answered: boolean
  readonly steps: ReadonlyMap<string, StepStart>
  /** Open text blocks and reasoning blocks: id → path. */
  readonly texts: ReadonlyMap<string, string>
  readonly reasonings: ReadonlyMap<string, string>
  /** Tool inputs that are still streaming, and tool calls without an outcome, both by {@link callKey}. */
  readonly inputs: ReadonlyMap<string, EntryOf<'tool-input-start'>>
  readonly calls: ReadonlyMap<string, EntryOf<'tool-call'>>
  readonly requests: ReadonlyMap<string, EntryOf<'request'>>
  apply(entry: Entry): void
  /** Returns the parts, with their paths, that close everything at or under `root`, innermost first. Does not apply them. */
  closing(options: Closing): { step: string; part: Part }[]
}

export interface Closing {
  root?: string
  now: number
  /** The outcome of open tool calls. */
  outcome: Extract<ToolOutcome, 'aborted' | 'unavailable'>
  /** The error of closed steps; its code is the reason of closed requests. */
  error: ErrorValue
}

/** Identifies a tool call by the step of its loop and its id, because ids repeat between providers. */
export function callKey(step: string, toolCallId: string): string {
  return `${parentPath(step)}\n${toolCallId}`
}

export const outcomeText: Record<ToolOutcome, string> = {
  aborted: 'The tool call was aborted: its result is unavailable. Do not assume that it ran.',
  unavailable: 'The result of this tool call is unavailable. Do not assume that it ran.',
  denied: 'The tool call was denied. It did not run.',
  'handed-over': 'The tool call was handed over to the client.',
}

/** The result of a call that has none of its own. */
export function lostResult({ toolCallId, toolName }: LostCall, outcome: ToolOutcome) {
  return { type: 'tool-result', toolCallId, toolName, result: outcomeText[outcome], isError: true, outcome } as const
}

type LostCall = Pick<EntryOf<'tool-call'>, 'toolCallId' | 'toolName'>

export function createOpenItems(): OpenItems {
  const steps = new Map<string, StepStart>()
  const texts = new Map<string, string>()
  const reasonings = new LazyMap<string, string>()
  const inputs = new LazyMap<string, EntryOf<'tool-input-start'>>()
  const calls = new LazyMap<string, EntryOf<'tool-call'>>()
  const requests = new LazyMap<string, EntryOf<'request'>>()
  // Plain fields, here and in the other folds: V8 stores an object literal with getters as a hash table, and a server has thousands of
  // folds.
  const items = {
    started: false,
    ended: false,
    suspended: false,
    answered: false,
    steps,
    texts,
    reasonings,
    inputs,
    calls,
    requests,
    apply,
    closing,
  }

  function apply(entry: Entry): void {
    switch (entry.type) {
      case 'run-start':
        items.started = true
        break
      case 'run-end':
        items.ended = true
        break
      case 'suspend':
        items.suspended = true
        break
      case 'resume':
        items.suspended = false
        break
      case 'answer-end':
        items.answered = true
        break
      case 'step-start':
        steps.set(entry.step, entry)
        break
      case 'step-finish':
        steps.delete(entry.step)
        break
      case 'text-start':
        texts.set(entry.id, entry.step)
        break
      case 'text-end':
        texts.delete(entry.id)
        break
      case 'reasoning-start':
        reasonings.set(entry.id, entry.step)
        break
      case 'reasoning-end':
        reasonings.delete(entry.id)
        break
      case 'tool-input-start':
        inputs.set(callKey(entry.step, entry.id), entry)
        break
      case 'tool-input-end':
        inputs.delete(callKey(entry.step, entry.id))
        break
      case 'tool-call':
        calls.set(callKey(entry.step, entry.toolCallId), entry)
        break
      case 'tool-result':
        if (entry.preliminary !== true) calls.delete(callKey(entry.step, entry.toolCallId))
        break
      case 'request':
        requests.set(entry.requestId, entry)
        break
      case 'response':
        requests.delete(entry.requestId)
        break
      case 'step-reset':
        for (const [path] of steps) if (isUnder(path, entry.step)) steps.delete(path)
        for (const map of [texts, reasonings]) {
          for (const [id, path] of map) if (isUnder(path, entry.step)) map.delete(id)
        }
        for (const map of [inputs, calls, requests]) {
          for (const [key, { step }] of map) if (isUnder(step, entry.step)) map.delete(key)
        }
        break
      default:
    }
  }

  function closing({ root = '', now, outcome, error }: Closing): { step: string; part: Part }[] {
    const parts: { step: string; part: Part }[] = []
    const add = (step: string, part: Part) => {
      if (isUnder(step, root)) parts.push({ step, part })
    }
    for (const [id, step] of texts) add(step, { type: 'text-end', id })
    for (const [id, step] of reasonings) add(step, { type: 'reasoning-end', id })
    for (const { step, id } of inputs.values()) add(step, { type: 'tool-input-end', id })
    for (const { step, requestId } of requests.values()) {
      add(step, { type: 'response', requestId, outcome: 'closed', reason: error.code })
    }
    for (const call of calls.values()) add(call.step, lostResult(call, outcome))
    if (steps.size === 0) return parts
    const open = [...steps.values()].filter(({ step }) => isUnder(step, root)).reverse()
    const depths = new Map(open.map(({ step }) => [step, step.split('/').length]))
    open.sort((a, b) => depths.get(b.step)! - depths.get(a.step)!)
    for (const { step, timestamp } of open) {
      add(step, { type: 'step-finish', duration: Math.max(0, now - timestamp), error })
    }
    return parts
  }

  return items
}
