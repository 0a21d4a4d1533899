/** The same for many runs: a few at a time, and what fails for one stops no other. */
import { messageOf } from '../../../src/part/error.ts'
import { hasEnded, type RunRow } from '../../../src/part/log.ts'
import type { Marks } from './useMarks.ts'

export type BulkAction = 'stop' | 'delete' | 'export'

export interface BulkFailure {
  id: string
  message: string
}

export interface BulkResult {
  done: readonly string[]
  failed: readonly BulkFailure[]
}

const together = 4

interface BulkOptions {
  /** After each. */
  onProgress(done: number): void
  /** When it aborts, what has not begun is left as it is. */
  signal: AbortSignal
  /** What may go well when the others are done. */
  isRetried?(error: unknown): boolean
}

export async function forEach(
  ids: readonly string[],
  work: (id: string) => Promise<unknown>,
  { onProgress, signal, isRetried = () => false }: BulkOptions,
): Promise<BulkResult> {
  const done: string[] = []
  const failed = new Map<string, string>()
  async function through(some: readonly string[], isLast: boolean): Promise<string[]> {
    const again: string[] = []
    const left = [...some]
    const next = async (): Promise<void> => {
      for (let id = left.shift(); id !== undefined && !signal.aborted; id = left.shift()) {
        try {
          await work(id)
          done.push(id)
        } catch (error) {
          if (!isLast && isRetried(error)) again.push(id)
          else failed.set(id, messageOf(error))
        }
        onProgress(done.length + failed.size)
      }
    }
    await Promise.all(Array.from({ length: together }, next))
    return again
  }
  const again = await through(ids, false)
  if (again.length > 0) await through(again, true)
  return { done, failed: [...failed].map(([id, message]) => ({ id, message })) }
}

/** A run of which forks have entries goes after them. */
export function isKept(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'run-kept'
}

export interface Split {
  /** What the action is for. Of a run that is not listed here nothing is known: the server decides. */
  wanted: readonly string[]
  /** What stays as it is. */
  left: number
}

/** Only what goes on can be stopped, only what is over can be deleted. */
export function splitFor(action: BulkAction, marks: Marks, mayDelete: (owner: string | undefined) => boolean): Split {
  const isFor = (run: RunRow | undefined): boolean => {
    if (run === undefined || action === 'export') return true
    return action === 'stop' ? !hasEnded(run.status) : hasEnded(run.status) && mayDelete(run.owner)
  }
  const wanted = [...marks].filter(([, run]) => isFor(run)).map(([id]) => id)
  return { wanted, left: marks.size - wanted.length }
}
