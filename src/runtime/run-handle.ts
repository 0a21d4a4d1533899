/** A run as its caller has it, wherever it is executed. */
import type { Store } from '../part/log.ts'
import { awaitEntry } from './await-entry.ts'
import { readResult, type RunResult } from './run-result.ts'
import { flatten } from './run-rows.ts'
import type { Run, Runtime } from './runtime.ts'
import type { Supervisor } from './supervisor.ts'

export interface HandleContext {
  store: Store
  supervisor: Pick<Supervisor, 'rested' | 'lossOf'>
  shutdown: AbortSignal
  runtime: Pick<Runtime, 'stop' | 'answer'>
}

export type CreateHandle = (id: string, threadId: string, joined?: boolean) => Run

export function createHandles({ store, supervisor, shutdown, runtime }: HandleContext): CreateHandle {
  const { log, runs } = store

  /** Resolves when the run has ended or is suspended, here or elsewhere, or when nobody will see that. */
  async function settled(id: string): Promise<void> {
    for (;;) {
      // If it was answered or stopped while it was being suspended, this waits for what follows.
      await supervisor.rested(id)
      if (supervisor.lossOf(id) !== undefined || shutdown.aborted) return
      const row = await runs.get(id)
      if (row?.status !== 'running') return
      // Another process has it.
      const isOver = ({ type }: { type: string }) => type === 'suspend' || type === 'run-end'
      if ((await awaitEntry(log, id, isOver, { after: row.lastSeq, signal: shutdown })) === undefined) return
    }
  }

  return (id, threadId, joined = false) => {
    // Created now, because a store that drops old runs keeps those with a reader.
    const live = log.read(id, { signal: shutdown })
    const stored = log.read(id)
    let result: Promise<RunResult> | undefined
    return {
      id,
      threadId,
      joined,
      parts: { [Symbol.asyncIterator]: () => flatten(live) },
      get result() {
        // A store that fails is a failed run.
        return (result ??= settled(id).then(
          () => readResult(store, id, stored),
          () => readResult(store, id, stored),
        ))
      },
      stop: (reason) => runtime.stop(id, reason),
      answer: (requestId, answer) => runtime.answer(id, requestId, answer, { protocol: 'library' }),
    }
  }
}
