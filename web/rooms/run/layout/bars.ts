/** What a step's bar is made of: the phases of its time, and its ticks. */
import type { OutlineMark } from '../../../../src/fold/outline-item.ts'
import type { Scale, View } from './scale.ts'
import { withoutSpans, type Span } from './spans.ts'
import { asks, isGroup, type StepNode } from '../../../../src/fold/step-tree.ts'

/**
 * `wait`: until the model begins to answer; `first`: until its first token; then the parts that it streams, and `gap` between them.
 * `sent`: a message waited until the model was told it. `ask`: a person or a client is asked; `idle`: the run is suspended; `group`: a step that holds others; `work`: any other.
 */
export type Phase =
  | 'wait'
  | 'first'
  | 'reasoning'
  | 'text'
  | 'tool-input'
  | 'gap'
  | 'tool'
  | 'sent'
  | 'ask'
  | 'idle'
  | 'group'
  | 'work'

export interface Segment extends Span {
  phase: Phase
}

/** `now`: the end of what is still open. */
export function segmentsOf(node: StepNode, now: number, suspended: readonly Span[]): Segment[] {
  const { step } = node
  const end = Math.max(step.at, step.end ?? now)
  if (asks(step)) return [{ phase: 'ask', from: step.at, to: end }]
  if (isGroup(node)) return aroundSuspends('group', { from: step.at, to: end }, suspended)
  if (step.kind === 'model-call' || node.blocks.length > 0)
    return phasesOf(node, end).flatMap(({ phase, from, to }) => aroundSuspends(phase, { from, to }, suspended))
  return aroundSuspends(step.kind === 'tool-call' ? 'tool' : 'work', { from: step.at, to: end }, suspended)
}

function aroundSuspends(phase: Phase, span: Span, suspended: readonly Span[]): Segment[] {
  if (suspended.length === 0) return [{ phase, ...span }]
  const idle = suspended
    .filter(({ from, to }) => from < span.to && to > span.from)
    .map(({ from, to }): Segment => ({ phase: 'idle', from: Math.max(from, span.from), to: Math.min(to, span.to) }))
  const rest = withoutSpans([span], idle).map((each): Segment => ({ phase, ...each }))
  return [...rest, ...idle].toSorted((a, b) => a.from - b.from)
}

function phasesOf({ step, blocks }: StepNode, end: number): Segment[] {
  const segments: Segment[] = []
  const first = step.first ?? blocks.find((block) => block.first !== undefined)?.first
  const opened = step.opened ?? (step.kind === 'model-call' ? (first ?? end) : step.at)
  const add = (phase: Phase, from: number, to: number) => {
    if (to > from || phase === 'text') segments.push({ phase, from, to: Math.max(from, to) })
  }
  add('wait', step.at, opened)
  add('first', opened, first ?? end)
  let last = first ?? end
  for (const block of blocks) {
    if (block.first === undefined) continue
    const until = Math.min(end, block.end ?? end)
    add('gap', last, block.first)
    add(block.kind, Math.max(last, block.first), until)
    last = Math.max(last, until)
  }
  add('gap', last, end)
  return segments
}

const ticked: ReadonlySet<string> = new Set(['retry', 'error', 'warning', 'source'])

export type TickKind = 'retry' | 'error' | 'warning' | 'source'

export interface BarTick {
  kind: TickKind
  at: number
  seq: number
  note: string | undefined
}

export function ticksOf(marks: readonly OutlineMark[]): BarTick[] {
  return marks
    .filter(({ type, failed }) => ticked.has(type) || (failed === true && type !== 'run-end'))
    .map(({ type, at, seq, note }) => ({ kind: ticked.has(type) ? (type as TickKind) : 'error', at, seq, note }))
}

/** Places in per cent of the width that is shown. */
export interface Placed extends Span {
  phase: Phase
  left: number
  width: number
}

/** They are seen however short they are. */
const content: ReadonlySet<Phase> = new Set(['reasoning', 'text', 'tool-input', 'tool', 'work', 'ask', 'sent'])

/** What of a bar is seen. What is too small to be seen on its own joins what it touches. `px`: the width that is shown. */
export function placeSegments(segments: readonly Segment[], scale: Scale, view: View, px: number): Placed[] {
  const placed: Placed[] = []
  const size = view.to - view.from
  const least = 100 / Math.max(50, px)
  for (const segment of segments) {
    const { phase } = segment
    const a = ((scale.toX(segment.from) - view.from) / size) * 100
    const b = ((scale.toX(segment.to) - view.from) / size) * 100
    if (b < -least || a > 100 + least) continue
    const isShort = b - a < least * 2
    const last = placed.at(-1)
    const end = last === undefined ? -1 : last.left + last.width
    // What was drawn wider than it is covers what comes right behind it.
    const left = Math.max(-1, isShort ? a : Math.max(a, Math.min(end, b)))
    const right = Math.min(101, content.has(phase) && isShort ? left + least * 2 : b)
    if (last !== undefined && last.phase === phase && left - end < least)
      last.width = Math.max(last.width, right - last.left)
    else if (right - left >= least * 0.9)
      placed.push({ phase, left, width: right - left, from: segment.from, to: segment.to })
  }
  return placed
}
