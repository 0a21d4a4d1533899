/**
 * The legal order of a run's entries, as a state machine.
 *
 * 1. `run-start` comes first, and exactly one `run-end` comes last. `seq` counts from 1 without gaps, except before merged deltas of a
 *    compacted run, whose `firstSeq` covers the gap.
 * 2. Each `text-start`, `reasoning-start` and `tool-input-start` has exactly one `-end` with the same id and path, with its
 *    deltas in between. Text and reasoning ids are unique in the run. Each `step-start` has one `step-finish`; a step starts
 *    while its parent is open.
 * 3. Each `tool-call` has exactly one outcome (a `tool-result` without `preliminary`) before the run ends.
 * 4. A request is answered at most once, while it is open. Between `suspend` and `resume` there are only responses, messages that are
 *    not delivered, and parts that close the run. There is at most one `answer-end`, after a step with `answer: true` has started.
 * 5. `step-reset` closes everything that an attempt of its path left open; the next attempt starts the same path again.
 */
import { type Entry, isDelta } from '../part/entry.ts'
import { callKey, createOpenItems, type OpenItems } from './open-items.ts'
import { isUnder, parentPath } from '../part/path.ts'

/** A state machine over the entries of one run. */
export interface Grammar {
  /** Returns the fault of this entry at this point, or undefined. Applies the entry either way. */
  check(entry: Entry): string | undefined
  /** Returns the fault if the log ends here, or undefined. `open: true` allows a run that has not ended. */
  end(options?: { open?: boolean }): string | undefined
}

/** Checks the order of one run's entries. `check` and `end` return the fault as text, or undefined. */
export function createGrammar(): Grammar {
  const open = createOpenItems()
  const counts = createOpenCounts(open)
  const usedIds = new Set<string>()
  /** Paths with an attempt that was not reset. */
  const attempted = new Set<string>()
  const resets = new Map<string, number>()
  const order = createSeqOrder()
  let answerStarted = false

  function judge(entry: Entry): string | undefined {
    const misplaced = order.check(entry)
    if (misplaced !== undefined) return misplaced
    if (open.ended) return 'nothing may follow run-end'
    if (entry.type === 'run-start') return open.started ? 'a second run-start' : undefined
    if (!open.started) return 'the first entry is not run-start'
    if (open.suspended && !whileSuspended.has(entry.type)) return 'the run is suspended'
    const { step } = entry
    if (step !== '' && !atClosedStep.has(entry.type) && !open.steps.has(step)) {
      return `step ${step} is not open`
    }
    switch (entry.type) {
      case 'step-start': {
        if (step === '') return 'step-start without a path'
        if (open.steps.has(step)) return `step ${step} is already open`
        const parent = parentPath(step)
        if (parentPath(parent) !== '' && !open.steps.has(parent)) return `step ${step} starts outside its parent`
        const due = (resets.get(step) ?? 0) + 1
        if (entry.attempt !== due) return `step ${step} is attempt ${entry.attempt}, expected ${due}`
        return undefined
      }
      case 'step-finish':
        return openUnder(step)
      case 'step-reset':
        return attempted.has(step) ? undefined : `step ${step} has no attempt to reset`
      case 'text-start':
      case 'reasoning-start':
        return usedIds.has(entry.id) ? `block id ${entry.id} was used before` : undefined
      case 'text-delta':
      case 'text-end':
        return open.texts.get(entry.id) === step ? undefined : `text ${entry.id} is not open under ${step}`
      case 'reasoning-delta':
      case 'reasoning-end':
        return open.reasonings.get(entry.id) === step ? undefined : `reasoning ${entry.id} is not open under ${step}`
      case 'tool-input-start':
        return open.inputs.has(callKey(step, entry.id)) ? `tool input ${entry.id} is already open` : undefined
      case 'tool-input-delta':
      case 'tool-input-end':
        return open.inputs.has(callKey(step, entry.id)) ? undefined : `tool input ${entry.id} is not open`
      case 'tool-call':
        if (open.calls.has(callKey(step, entry.toolCallId))) return `tool call ${entry.toolCallId} is already open`
        return open.inputs.has(callKey(step, entry.toolCallId))
          ? `tool call ${entry.toolCallId} comes before its input has ended`
          : undefined
      case 'tool-result':
        return open.calls.has(callKey(step, entry.toolCallId)) ? undefined : `tool call ${entry.toolCallId} is not open`
      case 'request':
        return open.requests.has(entry.requestId) ? `request ${entry.requestId} is already open` : undefined
      case 'response':
        return open.requests.has(entry.requestId) ? undefined : `request ${entry.requestId} is not open`
      case 'suspend':
        return entry.requests.every((id) => open.requests.has(id))
          ? undefined
          : 'suspend names a request that is not open'
      case 'resume':
        return open.suspended ? undefined : 'resume without suspend'
      case 'answer-end':
        if (open.answered) return 'a second answer-end'
        return answerStarted ? undefined : 'answer-end without an answering step'
      case 'run-end':
        return openUnder('')
      default:
        return undefined
    }
  }

  /**
   * Finds an item that is still open at or below a path, except the step itself. A tool call belongs to its loop and outlives its model
   * call.
   */
  function openUnder(root: string): string | undefined {
    if (counts.at(root) <= (root !== '' && open.steps.has(root) ? 1 : 0)) return undefined
    const rest = open.closing({ root, now: 0, outcome: 'aborted', error: { code: 'open', message: 'open' } })
    const first = rest.find(({ step, part }) => {
      if (part.type === 'tool-result') return isUnder(parentPath(step), root)
      return part.type !== 'step-finish' || step !== root || root === ''
    })
    return first && `${root === '' ? 'the run' : root} ends before ${first.part.type} of ${first.step}`
  }

  return {
    check(entry) {
      const fault = judge(entry)
      if (entry.type === 'text-start' || entry.type === 'reasoning-start') usedIds.add(entry.id)
      if (entry.type === 'step-start' && entry.answer === true) answerStarted = true
      if (entry.type === 'step-start') attempted.add(entry.step)
      if (entry.type === 'step-reset') {
        attempted.delete(entry.step)
        resets.set(entry.step, entry.attempt)
      }
      counts.apply(entry)
      return fault && `entry ${entry.seq} (${entry.type}): ${fault}`
    },
    end({ open: mayBeOpen = false } = {}) {
      if (!open.started) return 'no entries'
      return open.ended || mayBeOpen ? undefined : 'the run has no run-end'
    },
  }
}

// An open tool call is closed under the path of its model call, which has already finished.
const atClosedStep: ReadonlySet<string> = new Set(['step-start', 'step-reset', 'tool-result'])

const whileSuspended: ReadonlySet<string> = new Set([
  'resume',
  'response',
  'tool-result',
  'step-finish',
  'step-reset',
  'warning',
  'message',
  'run-end',
])

/** Whether the `seq`s of a run's entries are complete: dense, or covered by the `firstSeq`s of merged deltas. */
function createSeqOrder() {
  let last = 0
  /** The current series of merged deltas: the first `seq` that it must cover, and the first that it covers. */
  let series: { from: number; covers: number } | undefined

  /** Returns the fault in this entry's `seq`, or undefined. */
  function check(entry: Entry): string | undefined {
    const { seq, firstSeq } = entry
    const before = last
    last = seq
    // Merged deltas may overlap. A gap is an error only once no later merged delta can still cover it.
    if (series !== undefined && (firstSeq === undefined || (firstSeq > before && series.covers === series.from))) {
      const { from, covers } = series
      series = undefined
      if (covers > from) return `the entries ${from} to ${covers - 1} are missing`
    }
    if (firstSeq === undefined) return seq === before + 1 ? undefined : `seq is ${seq}, expected ${before + 1}`
    if (!isDelta(entry)) return 'only a delta has firstSeq'
    if (seq <= before) return `seq is ${seq}, expected more than ${before}`
    series ??= { from: before + 1, covers: firstSeq }
    if (firstSeq < series.from || firstSeq > seq) return `firstSeq is ${firstSeq}, expected ${series.from} to ${seq}`
    series.covers = Math.min(series.covers, firstSeq)
    return undefined
  }

  return { check }
}

/**
 * Counts the open items at or below each path, entry by entry, so that whether a step has open items is one lookup: a message with
 * thousands of tool calls would otherwise cost thousands of searches through thousands of items.
 */
interface OpenCounts {
  /** The number of open items at or below a path, including the step at that path. */
  at(path: string): number
  /** Applies the entry to the open items and updates the counts. */
  apply(entry: Entry): void
}

interface StepCount {
  count: number
  above: StepCount | undefined
}

export function createOpenCounts(open: OpenItems): OpenCounts {
  const places = new Map<string, StepCount>()

  /** The place of a path. It links to the one above, so that parent paths are not built anew for each entry. */
  function placeAt(path: string): StepCount {
    const known = places.get(path)
    if (known !== undefined) return known
    const made: StepCount = { count: 0, above: undefined }
    places.set(path, made)
    for (let [below, at] = [made, path]; at !== '';) {
      at = parentPath(at)
      const above = places.get(at)
      below.above = above ?? { count: 0, above: undefined }
      if (above !== undefined) break
      places.set(at, below.above)
      below = below.above
    }
    return made
  }

  function add(path: string, change: number): void {
    for (let at: StepCount | undefined = placeAt(path); at !== undefined; at = at.above) at.count += change
  }

  function recount(): void {
    places.clear()
    for (const path of [...open.steps.keys(), ...open.texts.values(), ...open.reasonings.values()]) add(path, 1)
    for (const items of [open.inputs, open.calls, open.requests]) for (const { step } of items.values()) add(step, 1)
  }

  return {
    at: (path) => places.get(path)?.count ?? 0,
    apply(entry) {
      const closes = closedBy(open, entry)
      const before = sizeOf(open)
      open.apply(entry)
      const change = sizeOf(open) - before
      // An entry that opens an open item again is a fault, and may have moved the item.
      if (entry.type === 'step-reset' || (change === 0 && opening.has(entry.type))) recount()
      else if (change > 0) add(entry.step, 1)
      else if (change < 0 && closes !== undefined) add(closes, -1)
    },
  }
}

const opening: ReadonlySet<string> = new Set([
  'step-start',
  'text-start',
  'reasoning-start',
  'tool-input-start',
  'tool-call',
  'request',
])

function sizeOf({ steps, texts, reasonings, inputs, calls, requests }: OpenItems): number {
  return steps.size + texts.size + reasonings.size + inputs.size + calls.size + requests.size
}

/** The path of the item that an entry closes: not always the entry's own, because a sibling step closes a call. */
function closedBy(open: OpenItems, entry: Entry): string | undefined {
  switch (entry.type) {
    case 'step-finish':
      return entry.step
    case 'text-end':
      return open.texts.get(entry.id)
    case 'reasoning-end':
      return open.reasonings.get(entry.id)
    case 'tool-input-end':
      return open.inputs.get(callKey(entry.step, entry.id))?.step
    case 'tool-result':
      return open.calls.get(callKey(entry.step, entry.toolCallId))?.step
    case 'response':
      return open.requests.get(entry.requestId)?.step
    default:
      return undefined
  }
}
