/** What the header of a run says, read off its outline. */
import type { OutlineItem, OutlineMark } from '../../../../src/fold/outline-item.ts'
import { forkGap } from '../../../../src/fold/fork-gap.ts'
import { addUsage, type Usage } from '../../../../src/part/usage.ts'
import { lengthOf, suspendedSpans, withoutSpans } from './spans.ts'
import type { StepNode, StepTree } from '../../../../src/fold/step-tree.ts'

export interface RunFacts {
  /** Its last word on it is in its `run-end`: here only that it has one. */
  state: 'running' | 'suspended' | 'ended'
  startedAt: number
  /** The `seq` of the `run-end`. */
  endSeq: number | undefined
  endedAt: number | undefined
  /** Without the time in which the run was suspended. */
  durationMs: number
  suspendedMs: number
  /** Since when it waits for a reply: epoch ms. */
  waitsSince: number | undefined
  /** Of a fork: the time of its source up to there, without that in which it was suspended. */
  takenOverMs: number | undefined
  /** From the start to the first token of the answer, without the time in which the run was suspended. */
  firstTokenMs: number | undefined
  /** From the start of the run to its first step. */
  queueMs: number | undefined
  tokensPerSecond: number | undefined
  usage: Usage | undefined
  /** USD; undefined when the price of any call is unknown. */
  cost: number | undefined
  retries: number
  errors: number
  /** Requests that wait for an answer. */
  open: readonly OutlineMark[]
}

/** `now`: the time of the last entry, or of the clock while the run goes on. */
export function readFacts(tree: StepTree, now: number): RunFacts {
  const fork = tree.marks[0]?.fork
  const shared = fork?.seq ?? 0
  const facts: RunFacts = {
    state: 'running',
    startedAt: fork?.at ?? tree.marks[0]?.at ?? now,
    endSeq: undefined,
    endedAt: undefined,
    durationMs: 0,
    suspendedMs: 0,
    waitsSince: undefined,
    takenOverMs: undefined,
    firstTokenMs: undefined,
    queueMs: undefined,
    tokensPerSecond: undefined,
    usage: undefined,
    cost: 0,
    retries: 0,
    errors: 0,
    open: [],
  }
  const asked = new Map<string, OutlineMark>()
  const note = (mark: OutlineMark) => {
    const { type, id = '' } = mark
    if (type === 'usage' && mark.usage !== undefined) {
      facts.usage = addUsage(facts.usage, mark.usage)
      facts.cost = facts.cost === undefined || mark.cost === undefined ? undefined : facts.cost + mark.cost
    } else if (type === 'retry') facts.retries++
    else if (type === 'error') facts.errors++
    else if (type === 'request') asked.set(id, mark)
  }
  for (const node of tree.all) for (const mark of node.marks) note(mark)
  for (const mark of tree.marks) {
    note(mark)
    if (mark.type === 'suspend') facts.state = 'suspended'
    else if (mark.type === 'resume') facts.state = 'running'
    else if (mark.type === 'run-end') {
      facts.state = 'ended'
      facts.endSeq = mark.seq
      facts.endedAt = mark.at
    }
  }
  // Answers may come under the path of the request, which its step may have left.
  const answered = [...tree.marks, ...tree.all.flatMap(({ marks }) => marks)].filter(({ type }) => type === 'response')
  for (const { id = '' } of answered) asked.delete(id)
  if (facts.state !== 'ended') facts.open = [...asked.values()].toSorted((a, b) => a.seq - b.seq)

  const end = facts.endedAt ?? now
  const suspended = suspendedSpans(tree.marks, end)
  /** What a run did while it was not suspended. Of a fork, since it was forked. */
  const worked = (to: number) =>
    Math.max(0, lengthOf(withoutSpans([{ from: facts.startedAt, to: Math.max(facts.startedAt, to) }], suspended)))
  facts.durationMs = worked(end)
  facts.suspendedMs = Math.max(0, end - facts.startedAt) - facts.durationMs
  if (facts.state === 'suspended') facts.waitsSince = Math.max(facts.startedAt, suspended.at(-1)?.from ?? end)
  const gap = forkGap(tree)
  if (gap !== undefined) {
    facts.takenOverMs = lengthOf(withoutSpans([{ from: tree.marks[0]!.at, to: gap.from }], suspended))
  }
  const first = tree.all.find(({ step }) => step.from > shared)
  if (first !== undefined) facts.queueMs = Math.max(0, first.step.at - facts.startedAt)
  const token = firstToken(tree, shared)
  if (token !== undefined) facts.firstTokenMs = worked(token)
  facts.tokensPerSecond = speedOf(tree.all)
  if (facts.usage === undefined) facts.cost = undefined
  return facts
}

/** `shared`: the last entry that is not the run's own. */
function firstToken(tree: StepTree, shared: number): number | undefined {
  const answers = tree.all.filter((node) => isAnswer(node))
  let first: number | undefined
  for (const { blocks, step } of answers.length > 0 ? answers : tree.all) {
    if (step.superseded !== undefined) continue
    for (const block of blocks) {
      if (block.first === undefined || block.kind === 'tool-input' || block.from <= shared) continue
      first = Math.min(first ?? Infinity, block.first)
    }
  }
  return first
}

function isAnswer(node: StepNode): boolean {
  for (let each: StepNode | undefined = node; each !== undefined; each = each.parent) if (each.step.answer) return true
  return false
}

/** Output tokens per second while models streamed; of calls that have not reported yet, a token for 4 characters. */
function speedOf(nodes: readonly StepNode[]): number | undefined {
  let tokens = 0
  let ms = 0
  for (const { step, blocks } of nodes) {
    const streamed = blocks.filter(({ first }) => first !== undefined)
    if (streamed.length === 0) continue
    // Not of all of them at once: there may be more than a call takes.
    const from = streamed.reduce((least, { first }) => Math.min(least, first!), Infinity)
    const to = streamed.reduce((most, block) => Math.max(most, lastDelta(block)), 0)
    const chars = streamed.reduce((sum, each) => sum + each.chars, 0)
    ms += to - from
    tokens += step.usage?.outputTokens ?? chars / 4
  }
  return ms < 20 || tokens === 0 ? undefined : (tokens / ms) * 1000
}

/** Of a block that grows: when the last slice of its rate began. */
function lastDelta({ first = 0, end, rate, per = 0 }: { first?: number; end?: number; rate?: number[]; per?: number }) {
  return end ?? first + Math.max(0, (rate?.length ?? 0) - 1) * per
}

/** When an entry was stored, as well as an outline that was clipped there can tell. */
export function timeOf(items: readonly OutlineItem[]): number {
  let last = 0
  for (const item of items) {
    if (item.k === 'mark') last = Math.max(last, item.at)
    else last = Math.max(last, item.at, item.end ?? 0, item.k === 'block' ? lastDelta(item) : 0)
  }
  return last
}
