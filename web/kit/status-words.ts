/**
 * The five words that the page has for what a run is doing, everywhere and in the address bar: running, waiting, completed, failed, stopped.
 * The API and the tables have names of their own, which are more: a run fails in four ways.
 */
import type { StepState } from '../../src/fold/step-tree.ts'
import type { RunStatus } from '../../src/part/log.ts'

export const stateWords = ['running', 'waiting', 'completed', 'failed', 'stopped'] as const

export type StateWord = (typeof stateWords)[number]

const words: Record<RunStatus, [glyph: string, word: StateWord, why?: string]> = {
  running: ['◐', 'running'],
  suspended: ['‖', 'waiting'],
  completed: ['●', 'completed'],
  failed: ['✕', 'failed'],
  aborted: ['■', 'stopped'],
  'budget-exceeded': ['✕', 'failed', 'over budget'],
  'timed-out': ['✕', 'failed', 'timed out'],
  interrupted: ['✕', 'failed', 'interrupted'],
}

export function statusWord(status: RunStatus): StateWord {
  return words[status][1]
}

/** The word, and in which way it failed: `failed: timed out`. */
export function statusInFull(status: RunStatus): string {
  const [, word, why] = words[status]
  return why === undefined ? word : `${word}: ${why}`
}

/** In which way it failed, if that says more than an error: `timed out`. */
export function failedBy(status: RunStatus): string | undefined {
  return words[status][2]
}

export function statusGlyph(status: RunStatus): string {
  return words[status][0]
}

/** The statuses of the API that a word stands for. */
export function statusesOf(word: StateWord): RunStatus[] {
  return (Object.keys(words) as RunStatus[]).filter((status) => words[status][1] === word)
}

/** `waiting,timed-out` of an address as statuses of the API. Names of the API stand for themselves. */
export function readStatuses(text: string | undefined): string[] {
  const named = text?.split(',').filter(Boolean) ?? []
  return [...new Set(named.flatMap((each) => (isStateWord(each) ? statusesOf(each) : [each])))]
}

/** The reverse, as short as can be. `undefined`: none. */
export function writeStatuses(statuses: readonly string[]): string | undefined {
  const whole = stateWords.filter((word) => statusesOf(word).every((status) => statuses.includes(status)))
  const covered = new Set<string>(whole.flatMap(statusesOf))
  return [...whole, ...statuses.filter((status) => !covered.has(status))].join(',') || undefined
}

function isStateWord(text: string): text is StateWord {
  return (stateWords as readonly string[]).includes(text)
}

/** The word of a step's state, as of a run's. */
export function stepWord(state: StepState): string {
  return state === 'done' ? 'completed' : state === 'superseded' ? 'discarded' : state
}
