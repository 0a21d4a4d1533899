/**
 * Folds the log of a run: its output, usage and requests so far. The engine's state is this fold plus engine-only fields, so a run's text
 * is held once. Takes entries one at a time; deltas cost one lookup.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { parentPath, isUnder } from '../part/path.ts'
import { handBackTool, respondTool } from '../part/respond.ts'
import { kindOf } from '../part/step-kind.ts'
import { addUsage, type Usage } from '../part/usage.ts'
import { createAgentsAbove, type AgentsAbove } from './agents-above.ts'
import { createAnswering } from './answering.ts'
import { toKept, toView, type EndedRequest, type KeptRun } from './kept-run.ts'
import { markOfRun } from './result-handle.ts'
import { createOpenItems, type OpenItems } from './open-items.ts'
import type { RunView, StepView, Summary } from './run-view.ts'
import { startSince } from './start-since.ts'
import { createToolLoop, type ToolLoop } from './tool-loop.ts'
import { LazyMap, LazySet } from './lazy-map.ts'
import { createUsageFold, type UsageFold } from './usage-fold.ts'

/** Apply entries in order; read the view at any time. */
export interface RunFold {
  apply(entry: Entry): void
  view(): RunView
}

/** The fold with everything that it collects. */
export interface FoldedRun extends RunFold {
  readonly open: OpenItems
  /** The agents that lead to a path. */
  readonly above: AgentsAbove
  readonly start: EntryOf<'run-start'> | undefined
  readonly end: EntryOf<'run-end'> | undefined
  readonly lastSeq: number
  readonly usage: Usage | undefined
  readonly used: UsageFold
  /** USD; undefined once any call's price is unknown, 0 before the first. */
  readonly cost: number | undefined
  /** The agent that has taken over the conversation last. */
  readonly answeredBy: string | undefined
  /** The `seq` of the last `resume`, 0 before the first. */
  readonly resumedAt: number
  /** The merged inputs of all `resume`s. */
  readonly resumedInput: Record<string, unknown> | undefined
  readonly steps: ReadonlyMap<string, StepView>
  /** The outputs of steps that call a model and of steps that answer, by path. */
  readonly loops: ReadonlyMap<string, ToolLoop>
  /** Paths of steps that answer, in the order in which they started. */
  readonly answers: ReadonlySet<string>
  /** Paths of answers that are JSON. */
  readonly objects: Pick<ReadonlySet<string>, 'has'>
  /** The declared order of parallel branches. */
  readonly orders: readonly (readonly [path: string, names: string[]])[]
  readonly ended: readonly EndedRequest[]
  /** Client tool calls that have no result from the client, by id. */
  readonly unanswered: ReadonlyMap<string, EntryOf<'step-start'>>
  /** Facts that `memory` steps stored, newest first. */
  readonly facts: readonly string[]
  readonly summary: Summary
  /** The last summary of each tool loop, by its path. */
  readonly summaries: Pick<ReadonlyMap<string, EntryOf<'summarized'>>, 'values'>
  /** The output of a step; collected from the first call on. */
  loopAt(path: string): ToolLoop
  kept(): KeptRun
}

/** A fold over one run. `view()` throws `store-damaged` before the `run-start`. */
export function createRunFold(): RunFold {
  const fold = foldRun()
  return { apply: (entry) => fold.apply(entry), view: () => fold.view() }
}

export function foldRun(): FoldedRun {
  return new FoldingRun()
}

/** A class with plain fields, not closures: one for each open stream (decisions/0028). The engine's state extends it. */
export class FoldingRun implements FoldedRun {
  readonly open = createOpenItems()
  readonly above = createAgentsAbove()
  start: EntryOf<'run-start'> | undefined = undefined
  end: EntryOf<'run-end'> | undefined = undefined
  lastSeq = 0
  usage: Usage | undefined = undefined
  readonly used = createUsageFold()
  cost: number | undefined = 0
  answeredBy: string | undefined = undefined
  resumedAt = 0
  resumedInput: Record<string, unknown> | undefined = undefined
  readonly steps = new Map<string, StepView>()
  readonly loops = new Map<string, ToolLoop>()
  readonly answers = new Set<string>()
  readonly objects = new LazySet<string>()
  readonly orders: [path: string, names: string[]][] = []
  readonly ended: EndedRequest[] = []
  readonly unanswered = new LazyMap<string, EntryOf<'step-start'>>()
  facts: readonly string[] = noFacts
  private readonly said = new SummaryFold()
  readonly summary: Summary = this.said.counts
  readonly summaries = new LazyMap<string, EntryOf<'summarized'>>()
  private readonly follows: (start: EntryOf<'step-start'>) => boolean
  // One path may get thousands of deltas: looking up their loop must not split strings each time.
  private readonly loopOf = new Map<string, ToolLoop | null>()
  private readonly answering = createAnswering()
  private readonly requested = new LazyMap<string, EntryOf<'request'>>()

  /** `follows`: whether to collect the output of a step that is not part of the answer. */
  constructor(follows: (start: EntryOf<'step-start'>) => boolean = () => false) {
    this.follows = follows
  }

  kept(): KeptRun {
    return toKept(this)
  }

  view(): RunView {
    return toView(toKept(this), { start: this.start!, end: this.end, steps: [...this.steps.values()] })
  }

  loopAt(path: string): ToolLoop {
    let loop = this.loops.get(path)
    if (loop === undefined) {
      loop = createToolLoop(path, this.start && markOfRun(this.start))
      this.loops.set(path, loop)
      this.loopOf.clear()
    }
    return loop
  }

  apply(entry: Entry): void {
    this.lastSeq = entry.seq
    const { step } = entry
    if (entry.type === 'step-start') this.begin(entry)
    else if (entry.type === 'text-start' || entry.type === 'reasoning-start') this.beginBlock(step)
    let loop = this.loopOf.get(step)
    if (loop === undefined) {
      loop = this.loops.get(step) ?? this.loops.get(parentPath(step)) ?? null
      this.loopOf.set(step, loop)
    }
    loop?.apply(entry)
    if (loop?.root === step && this.steps.get(step)?.kind === 'summary') this.loops.get(parentPath(step))?.apply(entry)
    if (entry.type === 'text-delta' || entry.type === 'reasoning-delta') return
    this.open.apply(entry)
    this.above.apply(entry)
    this.used.apply(entry)
    switch (entry.type) {
      case 'run-start':
        this.start = entry
        break
      case 'run-end':
        this.end = entry
        break
      case 'resume':
        this.resumedAt = entry.seq
        if (this.start !== undefined) this.start = startSince(this.start, entry)
        if (entry.input !== undefined) this.resumedInput = withInput(this.resumedInput, entry.input)
        break
      case 'usage':
        this.usage = addUsage(this.usage, entry.usage)
        this.cost = this.cost === undefined || entry.cost === undefined ? undefined : this.cost + entry.cost
        this.price(entry)
        break
      case 'text-end':
        this.said.add(step, 'textBlocks')
        break
      case 'reasoning-end':
        this.said.add(step, 'reasoningBlocks')
        break
      case 'tool-call':
        if (!this.isHandover(entry)) this.said.add(step, 'toolCalls')
        break
      case 'tool-result':
        if (entry.outcome === undefined || entry.outcome === 'denied') this.unanswered.delete(entry.toolCallId)
        if (entry.preliminary !== true && !this.isHandover(entry)) this.said.add(step, 'toolResults')
        if (entry.toolName === handBackTool && entry.isError !== true) this.answeredBy = undefined
        break
      case 'error':
        this.said.add(step, 'errors')
        break
      case 'summarized':
        this.summaries.set(step, entry)
        break
      case 'step-reset':
        this.said.reset(step)
        this.summaries.delete(step)
        this.leaveLoops(step)
        break
      case 'request':
        this.requested.set(entry.requestId, entry)
        break
      case 'response': {
        const { requestId, seq, answer, reason = 'closed' } = entry
        const toolCallId = this.requested.get(requestId)?.toolCallId ?? ''
        this.ended.push({ requestId, toolCallId, seq, ...(answer === undefined && { closed: reason }) })
        this.requested.delete(requestId)
        break
      }
      case 'step-finish':
        this.finish(entry)
        break
      default:
    }
  }

  private begin(entry: EntryOf<'step-start'>): void {
    const { step, stepType, attempt, answer, toolName, timestamp } = entry
    const kind = kindOf(entry)
    const view: StepView = { path: step, stepType, kind, attempt, startedAt: timestamp }
    if (answer) view.answer = answer
    if (toolName !== undefined) view.toolName = toolName
    this.steps.set(step, view)
    this.said.begin(step)
    if (entry.order !== undefined) this.orders.push([step, entry.order])
    if (entry.object === true) this.objects.add(step)
    this.answering.note(entry)
    if (entry.handoff === true) this.answeredBy = entry.agent
    if (kind === 'client-tool') this.unanswered.set(entry.toolCallId ?? '', entry)
    if (answer) this.answers.add(step)
    if (answer || this.follows(entry)) this.loopAt(step)
  }

  /** A summary that was begun for a call that is made again is begun anew. */
  private leaveLoops(step: string): void {
    for (const root of this.loops.keys()) {
      if (root === step || !isUnder(root, step) || this.steps.get(root)?.duration !== undefined) continue
      this.loops.delete(root)
      this.loopOf.clear()
    }
  }

  /** Text of the answer that comes from no known model call: the step that emits it is an answer of its own. */
  private beginBlock(step: string): void {
    if (!this.answering.has(step) || this.loops.has(step)) return
    if (this.loops.get(parentPath(step))?.list.some(({ path }) => path === step)) return
    this.answers.add(step)
    this.loopAt(step)
  }

  private price({ step, model, cost }: EntryOf<'usage'>): void {
    const view = this.steps.get(step)
    if (view === undefined) return
    view.model = model
    if (cost === undefined) {
      view.unpriced = true
      delete view.cost
    } else if (view.unpriced !== true) view.cost = (view.cost ?? 0) + cost
  }

  private finish({ step, duration, finishReason, usage, error, result }: EntryOf<'step-finish'>): void {
    const view = this.steps.get(step)
    if (view === undefined) return
    Object.assign(view, omitUndefined({ duration, finishReason, usage, error }))
    const { stored } = view.kind === 'memory' ? ((result ?? {}) as { stored?: unknown }) : {}
    if (Array.isArray(stored)) this.facts = [...stored.map(String), ...this.facts].slice(0, mostFacts)
  }

  private isHandover({ step, toolName }: EntryOf<'tool-call' | 'tool-result'>): boolean {
    return toolName === respondTool && this.steps.get(parentPath(step))?.kind === 'router'
  }
}

/** Changes the fold's own object: a copy for each `resume` would take quadratic time. */
function withInput(known: Record<string, unknown> = {}, more: Record<string, unknown>): Record<string, unknown> {
  // Not by assignment: `__proto__` would set the prototype.
  for (const [key, value] of Object.entries(more))
    Object.defineProperty(known, key, { value, enumerable: true, configurable: true, writable: true })
  return known
}

const noFacts: readonly string[] = []

/** Maximum number of facts of one run. A `memory` step stores at most 50 of 1,000 characters. */
const mostFacts = 1000

/** Counts the items of a run, without those that a `step-reset` discarded. */
const kinds = [
  'textBlocks',
  'reasoningBlocks',
  'toolCalls',
  'toolResults',
  'errors',
] as const satisfies (keyof Summary)[]

export class SummaryFold {
  readonly counts: Summary = { textBlocks: 0, reasoningBlocks: 0, toolCalls: 0, toolResults: 0, errors: 0 }
  /** The step and the kind of each counted item, in order. Two lists take less memory than a list of pairs. */
  private readonly steps: string[] = []
  private readonly kinds: number[] = []
  /** The index in these lists at which the last attempt of a step began. */
  private readonly begun = new LazyMap<string, number>()

  begin(step: string): void {
    this.begun.set(step, this.steps.length)
  }

  add(step: string, kind: (typeof kinds)[number]): void {
    this.counts[kind]++
    this.steps.push(step)
    this.kinds.push(kinds.indexOf(kind))
  }

  /** Discards the last attempt of the step, with everything below it. */
  reset(step: string): void {
    // Skips items before the attempt: resets of one step take linear time.
    for (let i = this.begun.get(step) ?? 0; i < this.steps.length; i++) {
      const kind = this.kinds[i]!
      if (kind < 0 || !isUnder(this.steps[i]!, step)) continue
      this.counts[kinds[kind]!]--
      this.kinds[i] = -1
    }
  }
}
