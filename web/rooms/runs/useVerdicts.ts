/** What people said of runs lately, for a column of the list. */
import { useMemo } from 'react'
import type { FeedbackRow } from '../../../src/part/feedback.ts'
import { api } from '../../data/client.ts'
import { useResource } from '../../data/resource.ts'

export interface Said {
  up: number
  down: number
}

/** Of the newest words: more are not asked for. */
const most = 1000

export function useVerdicts(isShown: boolean): ReadonlyMap<string, Said> {
  const { value } = useResource(isShown ? 'verdicts' : undefined, (signal) =>
    api<{ rows: FeedbackRow[] }>(`/api/feedback?limit=${most}`, { signal }),
  )
  return useMemo(() => countVerdicts(value?.rows ?? []), [value])
}

function countVerdicts(rows: readonly Pick<FeedbackRow, 'run' | 'verdict'>[]): ReadonlyMap<string, Said> {
  const found = new Map<string, Said>()
  for (const { run, verdict } of rows) {
    if (verdict === undefined) continue
    const said = found.get(run) ?? { up: 0, down: 0 }
    said[verdict]++
    found.set(run, said)
  }
  return found
}
