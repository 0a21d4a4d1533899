/** What the server says of two runs, and their outlines. */
import { useEffect } from 'react'
import type { OutlineItem, OutlineStep } from '../../../src/fold/outline-item.ts'
import type { Entry } from '../../../src/part/entry.ts'
import type { RunRow, RunStatus } from '../../../src/part/log.ts'
import type { Usage } from '../../../src/part/usage.ts'
import { api, fetchApi } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'
import { useResource, type Resource } from '../../data/resource.ts'
import { stepsOf } from './steps.ts'

export interface ToolDigest {
  name: string
  /** As JSON, cut after 4,000 characters. */
  input: string
  output?: string
  isError?: boolean
}

export interface RunDigest {
  id: string
  agent: string
  /** The YAML that it ran with. Empty for those who may not read agents. */
  pipeline: string
  outcome: RunStatus
  entries: number
  text: string
  tools: ToolDigest[]
  modelCalls: number
  usage?: Usage
  cost?: number
  /** Of a fork: from when it was forked. */
  duration: number
  /** Of a fork: how long its source had taken up to there. */
  takenOver?: number
  error?: string
}

export interface RunDiff {
  same: boolean
  divergence?: { a?: Entry; b?: Entry; fields: string[] }
  /** What the two were given that is not the same. */
  given: ('agent' | 'prompt')[]
  a: RunDigest
  b: RunDigest
}

export interface Compared extends RunDiff {
  steps: { a: OutlineStep[]; b: OutlineStep[] }
}

export function useCompared(a: string | undefined, b: string | undefined): Resource<Compared> {
  const key = a === undefined || b === undefined ? undefined : `/api/diff?${new URLSearchParams({ a, b })}`
  const found = useResource(key, async (signal): Promise<Compared> => {
    const [diff, ofA, ofB] = await Promise.all([
      api<RunDiff>(key!, { signal }),
      readSteps(a!, signal),
      readSteps(b!, signal),
    ])
    return { ...diff, steps: { a: ofA, b: ofB } }
  })
  const { reload } = found
  // A run that still goes on is compared again when it has ended.
  useEffect(() => {
    const states = new Map<string, string>()
    return followRows((rows) => {
      for (const { id, status } of rows) {
        if (id !== a && id !== b) continue
        const before = states.get(id)
        states.set(id, status)
        if (before !== undefined && before !== status) reload()
      }
    })
  }, [a, b, reload])
  return found
}

async function readSteps(id: string, signal: AbortSignal): Promise<OutlineStep[]> {
  const path = `/api/runs/${encodeURIComponent(id)}/outline`
  const text = await (await fetchApi(path, { accept: 'application/x-ndjson', signal })).text()
  const lines = text.split('\n').filter((line) => line !== '')
  return stepsOf(lines.map((line) => JSON.parse(line) as OutlineItem))
}

/** Runs to choose from. */
export function useRecentRows(): readonly RunRow[] {
  const { value } = useResource('recent-runs', (signal) => api<{ runs: RunRow[] }>('/api/runs?limit=50', { signal }))
  return value?.runs ?? []
}

/** The row of a run that need not be a recent one. */
export function useRow(id: string | undefined): RunRow | undefined {
  const path = `/api/runs?${new URLSearchParams({ idPrefix: id ?? '', limit: '1' })}`
  const { value } = useResource(id === undefined ? undefined : path, (signal) =>
    api<{ runs: RunRow[] }>(path, { signal }),
  )
  return value?.runs.find((row) => row.id === id)
}
