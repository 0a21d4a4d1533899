/**
 * Folds the log of a run: what it has said, spent and asked for so far. The engine's state is this fold and what only the
 * engine needs, so a run's text is held once. Takes entries one at a time; deltas cost one lookup.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import { compact } from '../part/compact.ts'
import { parentPath } from '../part/path.ts'
import { respondTool } from '../part/respond.ts'
import { kindOf } from '../part/step-kind.ts'
import { addUsage, type Usage } from '../part/usage.ts'
import { createAnswering } from './answering.ts'
import { toKept, toView, type EndedRequest, type KeptRun } from './kept-run.ts'
import { createOpenItems, type OpenItems } from './open-items.ts'
import type { RunView, StepView, Summary } from './run-view.ts'
import { createToolLoop, type ToolLoop } from './tool-loop.ts'
import { LateMap, LateSet } from './late-map.ts'
import { createUsageFold, type UsageFold } from './usage-fold.ts'

/** Apply entries in order; read the view at any time. */
export interface RunFold {
  apply(entry: Entry): void
  view(): RunView
}

/** The fold with everything that it collects. */
export interface FoldedRun extends RunFold {
  readonly open: OpenItems
  readonly start: EntryOf<'run-start'> | undefined
  readonly end: EntryOf<'run-end'> | undefined
  readonly lastSeq: number
  readonly usage: Usage | undefined
  readonly used: UsageFold
  /** USD; undefined once any call's price is unknown, 0 before the first. */
  readonly cost: number | undefined
  /** Epoch ms of the first delta of a text or of reasoning. */
  readonly firstTokenAt: number | undefined
  /** The `seq` of the last `resume`, 0 before the first. */
  readonly resumedAt: number
  /** What all `resume`s brought, merged. */
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
  /** Tool calls that a client was asked to run and that have no result of it, by id. */
  readonly unanswered: ReadonlyMap<string, EntryOf<'step-start'>>
  /** What `memory` steps stored, newest first. */
  readonly facts: readonly string[]
  readonly summary: Summary
  /** The output of a step, which is followed from here on. */
  loopAt(path: string): ToolLoop
  kept(): KeptRun
}

/** A fold over one run. `view()` throws a `TypeError` before the `run-start`. */
export function createRunFold(): RunFold {
  return foldRun(() => false)
}

/** `follows`: whether the output of a step is collected although it is not the answer. */
export function foldRun(follows: (start: EntryOf<'step-start'>) => boolean = () => false): FoldedRun {
  const open = createOpenItems()
  const steps = new Map<string, StepView>()
  const loops = new Map<string, ToolLoop>()
  // One path may get thousands of deltas: looking up their loop must not split strings each time.
  const loopOf = new Map<string, ToolLoop | null>()
  const answering = createAnswering()
  const answers = new Set<string>()
  const objects = new LateSet<string>()
  const orders: [path: string, names: string[]][] = []
  const asked = new LateMap<string, EntryOf<'request'>>()
  const ended: EndedRequest[] = []
  const unanswered = new LateMap<string, EntryOf<'step-start'>>()
  const summary: Summary = { textBlocks: 0, reasoningBlocks: 0, toolCalls: 0, toolResults: 0, errors: 0 }
  // Plain fields: see `createOpenItems`.
  const fold = {
    open,
    start: undefined as EntryOf<'run-start'> | undefined,
    end: undefined as EntryOf<'run-end'> | undefined,
    lastSeq: 0,
    usage: undefined as Usage | undefined,
    used: createUsageFold(),
    cost: 0 as number | undefined,
    firstTokenAt: undefined as number | undefined,
    resumedAt: 0,
    resumedInput: undefined as Record<string, unknown> | undefined,
    steps,
    loops,
    answers,
    objects,
    orders,
    ended,
    unanswered,
    facts: [] as string[],
    summary,
    loopAt,
    apply,
    kept: () => toKept(fold),
    view: () => toView(toKept(fold), { start: fold.start!, end: fold.end, steps: [...steps.values()] }),
  }

  function loopAt(path: string): ToolLoop {
    let loop = loops.get(path)
    if (loop === undefined) {
      loop = createToolLoop(path)
      loops.set(path, loop)
      loopOf.clear()
    }
    return loop
  }

  function apply(entry: Entry): void {
    fold.lastSeq = entry.seq
    const { step } = entry
    if (entry.type === 'step-start') begin(entry)
    else if (entry.type === 'text-start' || entry.type === 'reasoning-start') beginBlock(step)
    let loop = loopOf.get(step)
    if (loop === undefined) {
      loop = loops.get(step) ?? loops.get(parentPath(step)) ?? null
      loopOf.set(step, loop)
    }
    loop?.apply(entry)
    if (entry.type === 'text-delta' || entry.type === 'reasoning-delta') {
      fold.firstTokenAt ??= entry.timestamp
      return
    }
    open.apply(entry)
    fold.used.apply(entry)
    switch (entry.type) {
      case 'run-start':
        fold.start = entry
        break
      case 'run-end':
        fold.end = entry
        break
      case 'resume':
        fold.resumedAt = entry.seq
        if (fold.start !== undefined && entry.agent !== undefined && entry.pipeline !== undefined) {
          fold.start = { ...fold.start, agent: entry.agent, pipeline: entry.pipeline }
        }
        if (entry.input !== undefined) fold.resumedInput = { ...fold.resumedInput, ...entry.input }
        break
      case 'usage':
        fold.usage = addUsage(fold.usage, entry.usage)
        fold.cost = fold.cost === undefined || entry.cost === undefined ? undefined : fold.cost + entry.cost
        price(entry)
        break
      case 'text-end':
        summary.textBlocks++
        break
      case 'reasoning-end':
        summary.reasoningBlocks++
        break
      case 'tool-call':
        if (!isHandover(entry)) summary.toolCalls++
        break
      case 'tool-result':
        if (entry.outcome === undefined || entry.outcome === 'denied') unanswered.delete(entry.toolCallId)
        if (entry.preliminary !== true && !isHandover(entry)) summary.toolResults++
        break
      case 'error':
        summary.errors++
        break
      case 'request':
        asked.set(entry.requestId, entry)
        break
      case 'response': {
        const { requestId, seq, answer, reason = 'closed' } = entry
        const toolCallId = asked.get(requestId)?.toolCallId ?? ''
        ended.push({ requestId, toolCallId, seq, ...(answer === undefined && { closed: reason }) })
        asked.delete(requestId)
        break
      }
      case 'step-finish':
        finish(entry)
        break
      default:
    }
  }

  function begin(entry: EntryOf<'step-start'>): void {
    const { step, stepType, attempt, answer, toolName, timestamp } = entry
    const kind = kindOf(entry)
    const view: StepView = { path: step, stepType, kind, attempt, startedAt: timestamp }
    if (answer) view.answer = answer
    if (toolName !== undefined) view.toolName = toolName
    steps.set(step, view)
    if (entry.order !== undefined) orders.push([step, entry.order])
    if (entry.object === true) objects.add(step)
    answering.note(entry)
    if (kind === 'client-tool') unanswered.set(entry.toolCallId ?? '', entry)
    if (answer) answers.add(step)
    if (answer || follows(entry)) loopAt(step)
  }

  /** Text of the answer that comes from no model call of a known step: the step that emits it is an answer of its own. */
  function beginBlock(step: string): void {
    if (!answering.has(step) || loops.has(step)) return
    if (loops.get(parentPath(step))?.list.some(({ path }) => path === step)) return
    answers.add(step)
    loopAt(step)
  }

  function price({ step, model, cost }: EntryOf<'usage'>): void {
    const view = steps.get(step)
    if (view === undefined) return
    view.model = model
    if (cost === undefined) {
      view.unpriced = true
      delete view.cost
    } else if (view.unpriced !== true) view.cost = (view.cost ?? 0) + cost
  }

  function finish({ step, duration, finishReason, usage, error, result }: EntryOf<'step-finish'>): void {
    const view = steps.get(step)
    if (view === undefined) return
    Object.assign(view, compact({ duration, finishReason, usage, error }))
    const { stored } = view.kind === 'memory' ? ((result ?? {}) as { stored?: unknown }) : {}
    if (Array.isArray(stored)) fold.facts = [...stored.map(String), ...fold.facts].slice(0, mostFacts)
  }

  function isHandover({ step, toolName }: EntryOf<'tool-call' | 'tool-result'>): boolean {
    return toolName === respondTool && steps.get(parentPath(step))?.kind === 'router'
  }

  return fold
}

/** Of one run. A `memory` step stores at most 50 of 1,000 characters. */
const mostFacts = 1000
