import { hasEnded, type RunRow } from '../../../src/part/log.ts'

/** ms. While it waits, up to when it began to wait. */
export function tookOf(run: RunRow, now: number): number {
  if (run.endedAt !== undefined) return run.endedAt - run.startedAt
  const end = run.status === 'suspended' || hasEnded(run.status) ? run.updatedAt : Math.max(now, run.updatedAt)
  return end - run.startedAt
}
