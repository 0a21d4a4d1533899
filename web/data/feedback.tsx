/** What people say of the answers of a conversation, or of one run: asked for once, for all that is shown of it. */
import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from 'react'
import type { FeedbackRow, Verdict } from '../../src/part/feedback.ts'
import { api } from './client.ts'
import { useResource } from './resource.ts'
import { useMay, useServer } from './server.ts'

export interface RunFeedback {
  /** What the reader has said. */
  own: FeedbackRow | undefined
  /** What others have. */
  others: readonly FeedbackRow[]
  /** Replaces the reader's word; nothing takes it back. Rejects when it was not kept. */
  say(verdict: Verdict | undefined, note: string): Promise<void>
}

interface Known {
  rows: readonly FeedbackRow[]
  set(run: string, row: FeedbackRow | undefined): void
}

const Context = createContext<Known | undefined>(undefined)

/** `of`: the path of the list, such as `/api/runs/<id>/feedback`; undefined asks for nothing. */
export function FeedbackOf({ of, children }: { of: string | undefined; children: ReactNode }) {
  const { value } = useResource(of, (signal) => api<{ rows: FeedbackRow[] }>(of!, { signal }))
  /** What was said since, by run. */
  const [said, setSaid] = useState<ReadonlyMap<string, FeedbackRow | undefined>>(new Map())
  const set = useCallback((run: string, row: FeedbackRow | undefined) => {
    setSaid((before) => new Map(before).set(run, row))
  }, [])
  const isOwn = useIsOwn()
  const rows = useMemo(() => {
    const others = (value?.rows ?? []).filter((row) => !said.has(row.run) || !isOwn(row))
    return [...others, ...[...said.values()].filter((row) => row !== undefined)]
  }, [value, said, isOwn])
  const known = useMemo(() => ({ rows, set }), [rows, set])
  return <Context value={known}>{children}</Context>
}

function useIsOwn(): (row: FeedbackRow) => boolean {
  const { id = '', tenant = '' } = useServer().facts?.user ?? {}
  return useCallback((row) => row.user === id && row.tenant === tenant, [id, tenant])
}

/** Undefined where the reader may say nothing. */
export function useFeedback(run: string): RunFeedback | undefined {
  const known = useContext(Context)
  const may = useMay('runs.judge')
  const isOwn = useIsOwn()
  if (known === undefined || may !== true) return undefined
  const rows = known.rows.filter((row) => row.run === run)
  return {
    own: rows.find(isOwn),
    others: rows.filter((row) => !isOwn(row)),
    async say(verdict, note) {
      const path = `/api/runs/${encodeURIComponent(run)}/feedback`
      if (verdict === undefined && note.trim() === '') {
        await api(path, { method: 'DELETE' })
        return known.set(run, undefined)
      }
      known.set(run, await api<FeedbackRow>(path, { method: 'POST', body: { ...(verdict && { verdict }), note } }))
    },
  }
}
