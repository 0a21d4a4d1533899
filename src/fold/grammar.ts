/**
 * The legal order of a run's entries, as a state machine.
 *
 * 1. `run-start` comes first, and exactly one `run-end` comes last. `seq` counts from 1 without gaps, except before merged deltas of a
 *    compacted run, whose `firstSeq` covers the gap.
 * 2. Each `text-start`, `reasoning-start` and `tool-input-start` has exactly one `-end` with the same id and path, with its
 *    deltas in between. Text and reasoning ids are unique in the run. Each `step-start` has one `step-finish`; a step starts
 *    while its parent is open.
 * 3. Each `tool-call` has exactly one outcome (a `tool-result` without `preliminary`) before the run ends.
 * 4. A request is answered at most once, while it is open. Between `suspend` and `resume` there are only responses and parts
 *    that close the run. There is at most one `answer-end`, after a step with `answer: true` has started.
 * 5. `step-reset` closes everything that an attempt of its path left open; the next attempt starts the same path again.
 */
import type { Entry } from '../part/entry.ts'
import { createOpenCounts } from './open-counts.ts'
import { createSeqOrder } from './seq-order.ts'
import { callKey, createOpenItems } from './open-items.ts'
import { isUnder, parentPath } from '../part/path.ts'

/** A state machine over the entries of one run. */
export interface Grammar {
  /** Returns what is wrong with this entry at this point, or undefined. Applies the entry either way. */
  check(entry: Entry): string | undefined
  /** Returns what is missing if no more entries follow, or undefined. `open: true` allows a run that has not ended. */
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

  /** Anything still open at or below a path, except the step itself. A tool call belongs to its loop and outlives its model call. */
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
  'run-end',
])
