/** Spans of time: which part of a run something happened in. Times are epoch ms. */
import type { OutlineMark } from '../../../../src/fold/outline-item.ts'
import { forkGap } from '../../../../src/fold/fork-gap.ts'
import { asks, isGroup, type StepTree } from '../../../../src/fold/step-tree.ts'

export interface Span {
  from: number
  to: number
}

/** Sorted, without overlaps. */
export function mergeSpans(spans: readonly Span[]): Span[] {
  const merged: Span[] = []
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1)
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to)
    else merged.push({ from, to })
  }
  return merged
}

/** What is left of some spans without others. Both are merged. */
export function withoutSpans(spans: readonly Span[], holes: readonly Span[]): Span[] {
  const left: Span[] = []
  for (const { from, to } of spans) {
    let start = from
    for (const hole of holes) {
      if (hole.to <= start) continue
      if (hole.from >= to) break
      if (hole.from > start) left.push({ from: start, to: hole.from })
      start = hole.to
    }
    if (start < to || start === from) left.push({ from: start, to: Math.max(start, to) })
  }
  return left
}

export function lengthOf(spans: readonly Span[]): number {
  return spans.reduce((sum, { from, to }) => sum + to - from, 0)
}

/** When the run was suspended. `now`: the end of a suspend that goes on. */
export function suspendedSpans(marks: readonly OutlineMark[], now: number): Span[] {
  const spans: Span[] = []
  let from: number | undefined
  for (const { type, at } of marks) {
    if (type === 'suspend') from ??= at
    else if ((type === 'resume' || type === 'run-end') && from !== undefined) {
      spans.push({ from, to: at })
      from = undefined
    }
  }
  if (from !== undefined) spans.push({ from, to: Math.max(from, now) })
  return spans
}

/** When the run was not at work: suspended, or not forked yet. */
export function pausesOf(tree: StepTree, now: number): Span[] {
  const gap = forkGap(tree)
  return mergeSpans([...suspendedSpans(tree.marks, now), ...(gap === undefined ? [] : [gap])])
}

/** When the run did something: called a model, ran a tool or code. To wait for a person is not to be busy. */
export function busySpans(tree: StepTree, now: number, suspended: readonly Span[]): Span[] {
  const spans: Span[] = []
  for (const node of tree.all) {
    const { at, end = now } = node.step
    if (isGroup(node) || asks(node.step)) spans.push({ from: at, to: at }, { from: end, to: end })
    else spans.push({ from: at, to: Math.max(at, end) })
    for (const mark of node.marks) spans.push({ from: mark.at, to: mark.at })
  }
  for (const { at } of tree.marks) spans.push({ from: at, to: at })
  return withoutSpans(mergeSpans(spans), suspended)
}

const shortestGap = 2000

/** Where nothing happened for so long that it is not drawn to scale: longer than 2 s and 5 % of the busy time. */
export function idleGaps(busy: readonly Span[]): Span[] {
  const least = Math.max(shortestGap, lengthOf(busy) * 0.05)
  const gaps: Span[] = []
  for (let i = 1; i < busy.length; i++) {
    const gap = { from: busy[i - 1]!.to, to: busy[i]!.from }
    if (gap.to - gap.from > least) gaps.push(gap)
  }
  return gaps
}
