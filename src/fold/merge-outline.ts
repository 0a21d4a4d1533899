/** Merges the items of an outline that were sent in several batches. */
import type { OutlineItem, OutlineBlock, OutlineMark, OutlineStep } from './outline-item.ts'
import { addUsage } from '../part/usage.ts'

/** The `seq` of the entry with which an item begins: unique among items. */
export function keyOf(item: OutlineItem): number {
  return item.k === 'mark' ? item.seq : item.from
}

/** The path of the item's step. */
export function placeOf(item: OutlineItem): string {
  return item.k === 'step' ? item.path : item.step
}

/** The latest version of each item, in the order in which they begin. */
export function mergeOutline(items: Iterable<OutlineItem>): OutlineItem[] {
  const latest = new Map<number, OutlineItem>()
  let before = 0
  let isSorted = true
  for (const item of items) {
    const key = keyOf(item)
    if (key < before && !latest.has(key)) isSorted = false
    else before = Math.max(before, key)
    latest.set(key, item)
  }
  const merged = [...latest.values()]
  return isSorted ? merged : merged.toSorted((a, b) => keyOf(a) - keyOf(b))
}

export function copyItem<T extends OutlineItem>(item: T): T {
  return item.k === 'block' && item.rate !== undefined ? { ...item, rate: [...item.rate] } : { ...item }
}

/*
 * The outline as it was at an entry.
 *
 * It draws the same as an outline of the entries up to there. For items that were open then, these are estimates: `to` of a step, `n`,
 * `chars` and `rate` of a block, `n` and `bytes` of a mark.
 */

/** `items`: merged. Items that were complete at that point are returned as they are. */
export function clipOutline(items: readonly OutlineItem[], seq: number): OutlineItem[] {
  const clipped: OutlineItem[] = []
  /** Steps that were open, by path. Their missing fields are restored from their clipped blocks and marks. */
  const open = new Map<string, OutlineStep>()
  for (const item of items) {
    if (keyOf(item) > seq) break
    const then = clip(item, seq)
    clipped.push(then)
    if (then.k === 'step') {
      if (then === item || then.end !== undefined) open.delete(then.path)
      else open.set(then.path, then)
    } else {
      const step = open.get(then.step)
      if (step !== undefined) addItem(step, then)
    }
  }
  return clipped
}

function clip(item: OutlineItem, seq: number): OutlineItem {
  const then = item.superseded === undefined || item.superseded <= seq ? item : { ...item }
  if (then !== item) delete then.superseded
  if (then.k === 'mark') return (then.to ?? then.seq) <= seq ? then : clipMark(then, seq)
  if (then.to <= seq) return then
  return then.k === 'step' ? clipStep(then, seq) : clipBlock(then, seq)
}

/** Only the fields known at its start: `tell` adds the rest. */
function clipStep(step: OutlineStep, seq: number): OutlineStep {
  const then = { ...step, to: seq }
  for (const key of learned) delete then[key]
  return then
}

const learned = ['opened', 'first', 'end', 'usage', 'cost', 'model', 'finishReason', 'error'] as const

function clipBlock(block: OutlineBlock, seq: number): OutlineBlock {
  const { from, to, begun = from + 1, first, rate, n, chars } = block
  const then = { ...block, to: seq }
  delete then.end
  if (first === undefined || seq < begun) {
    for (const key of ['begun', 'first', 'rate', 'per'] as const) delete then[key]
    return { ...then, to: from, n: 0, chars: 0 }
  }
  const share = (seq - from) / (to - from)
  if (rate !== undefined) then.rate = rate.slice(0, Math.ceil(rate.length * share))
  return { ...then, n: Math.max(1, Math.round(n * share)), chars: Math.round(chars * share) }
}

function clipMark(mark: OutlineMark, seq: number): OutlineMark {
  const { to, n = 1, progress: _, ...fixed } = mark
  const share = (seq - mark.seq + 1) / (to! - mark.seq + 1)
  const left = Math.max(1, Math.round(n * share))
  return { ...fixed, bytes: Math.round(mark.bytes * share), ...(left > 1 && { to: seq, n: left }) }
}

/** Updates a step the way the fold does with its entries. */
function addItem(step: OutlineStep, item: OutlineBlock | OutlineMark): void {
  if (item.k === 'block') {
    if (item.first !== undefined && item.first < (step.first ?? Infinity)) step.first = item.first
    return
  }
  if (item.type === 'prompt' && item.note !== undefined) step.model = item.note
  else if (item.type === 'stream-start' && step.first === undefined) step.opened = item.at
  else if (item.type === 'usage') spend(step, item)
}

function spend(step: OutlineStep, { note, usage, cost }: OutlineMark): void {
  if (note !== undefined) step.model = note
  const isFirst = step.usage === undefined
  if (usage !== undefined) step.usage = addUsage(step.usage, usage)
  const sum = isFirst ? cost : step.cost === undefined || cost === undefined ? undefined : step.cost + cost
  if (sum === undefined) delete step.cost
  else step.cost = sum
}
