/** A run's status as the page says it. */
import type { RunStatus } from '../../src/part/log.ts'

const words: Record<RunStatus, [glyph: string, word: string]> = {
  running: ['◐', 'running'],
  suspended: ['‖', 'waits'],
  completed: ['●', 'completed'],
  failed: ['✕', 'failed'],
  aborted: ['■', 'stopped'],
  'budget-exceeded': ['▲', 'over budget'],
  'timed-out': ['◔', 'timed out'],
  interrupted: ['↯', 'interrupted'],
}

export function statusWord(status: RunStatus): string {
  return words[status][1]
}

export function statusGlyph(status: RunStatus): string {
  return words[status][0]
}
