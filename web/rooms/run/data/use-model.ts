/** What the room draws, derived from the outline: the whole run, and the run as it was at the place of the scrubber. */
import { useEffect, useMemo, useState } from 'react'
import { clipOutline } from '../../../../src/fold/merge-outline.ts'
import type { OutlineItem } from '../../../../src/fold/outline-item.ts'
import { readFacts, timeOf, type RunFacts } from '../layout/facts.ts'
import { createScale, type Scale } from '../layout/scale.ts'
import { busySpans, idleGaps, pausesOf, type Span } from '../layout/spans.ts'
import { buildTree, type StepTree } from '../../../../src/fold/step-tree.ts'
import type { RunSnapshot } from './run-store.ts'

export interface RunModel {
  /** All of the run. */
  whole: StepTree
  items: readonly OutlineItem[]
  /** At the place of the scrubber. */
  tree: StepTree
  facts: RunFacts
  /** The time there: where what is open ends. */
  now: number
  pauses: readonly Span[]
  /** Of the whole run, so that nothing moves while the scrubber does. */
  scale: Scale
}

/** `isPinned`: the time axis stays as it is although the run goes on. */
export function useModel(snapshot: RunSnapshot, at: number | undefined, isPinned: boolean): RunModel {
  const { items, isLive, heard } = snapshot
  const whole = useMemo(() => buildTree(items), [items])
  // Of what only grows there is nothing newer than what was heard last.
  const last = Math.max(
    useMemo(() => timeOf(items), [items]),
    heard?.at ?? 0,
  )
  const isRunning = isLive && readState(whole) === 'running'
  // What waits grows, too: by the second is enough.
  const clock = useClock(isLive && at === undefined, isRunning && items.length <= 4000 ? 250 : 1000)
  // The server's clock, as far as its entries tell.
  const passed = heard === undefined || clock === 0 ? 0 : Math.max(0, clock - heard.seen)
  const end = isLive && heard !== undefined ? Math.max(last, heard.at + passed) : last

  const clipped = useMemo(() => (at === undefined ? items : clipOutline(items, at)), [items, at])
  const tree = useMemo(() => (clipped === items ? whole : buildTree(clipped)), [clipped, items, whole])
  const now = useMemo(() => (clipped === items ? end : timeOf(clipped)), [clipped, items, end])
  // Of a large run that goes on, not at each token.
  const told = items === clipped && isLive && items.length > 4000 ? Math.ceil(now / 1000) * 1000 : now
  const facts = useMemo(() => readFacts(tree, told), [tree, told])
  const pauses = useMemo(() => pausesOf(tree, told), [tree, told])

  const from = whole.marks[0]?.at ?? whole.all[0]?.step.at ?? 0
  const room = isRunning ? from + roomFor(end - from) : end
  const to = Math.max(from + 1, room)
  const current = useMemo(() => {
    const busy = busySpans(whole, to, pausesOf(whole, to))
    return createScale({ from, to }, idleGaps(busy))
  }, [whole, from, to])
  const [pinned, setPinned] = useState<Scale>()
  if (isPinned !== (pinned !== undefined)) setPinned(isPinned ? current : undefined)
  const scale = pinned ?? current
  return { whole, items: clipped, tree, facts, now, pauses, scale }
}

function readState(tree: StepTree): 'running' | 'suspended' | 'ended' {
  const { type = '' } = tree.marks.findLast(({ type: each }) => states.has(each)) ?? {}
  return type === 'suspend' ? 'suspended' : type === 'run-end' ? 'ended' : 'running'
}
const states: ReadonlySet<string> = new Set(['suspend', 'resume', 'run-end'])

/** Free room at the right, which is filled before everything is drawn narrower. */
function roomFor(ms: number): number {
  const shortest = 2000
  return shortest * 1.4 ** Math.max(0, Math.ceil(Math.log(Math.max(1, ms) / shortest) / Math.log(1.4)))
}

function useClock(isOn: boolean, every: number): number {
  const [now, setNow] = useState(0)
  useEffect(() => {
    if (!isOn) return
    const timer = setInterval(() => setNow(performance.now()), every)
    return () => clearInterval(timer)
  }, [isOn, every])
  return isOn ? now : 0
}
