/** The long results that a model was told shortened: it got the beginning, the end, and a handle to read the rest. */
import { useMemo } from 'react'
import type { EntryOf } from '../../../src/part/entry.ts'
import { markOfRun, parseHandle } from '../../../src/fold/result-handle.ts'
import type { StepTree } from '../../../src/fold/step-tree.ts'
import { useEntry } from './data/use-entries.ts'
import type { Windows } from './data/windows.ts'

/** By the `seq` of their `tool-result`. Those of the thread's earlier runs are not in it. */
export type Handles = ReadonlyMap<number, string>

export function useHandles(tree: StepTree, windows: Windows): Handles {
  const all = useMemo(
    () => [tree, ...tree.all].flatMap(({ marks }) => marks.flatMap(({ shortened = [] }) => shortened)),
    [tree],
  )
  const start = useEntry(windows, all.length === 0 ? undefined : 1) as EntryOf<'run-start'> | undefined
  return useMemo(() => {
    const own = start && markOfRun(start)
    return new Map(
      all.flatMap((handle) => {
        const found = parseHandle(handle)
        return found !== undefined && found.mark === own ? [[found.seq, handle] as const] : []
      }),
    )
  }, [all, start])
}
