/** A {@link LiveList} of the server, kept up to date. */
import { useCallback, useEffect, useRef, useState } from 'react'
import {
  firstPage,
  patched,
  shown,
  withChanges,
  without,
  withPage,
  type Listed,
  type ListRules,
  type LiveList,
} from './live-list.ts'
import { onConnection, readConnection } from './live.ts'

export interface ListSource<T extends Listed> extends ListRules<T> {
  /** What is listed; another key is another list. */
  key: string
  pageSize: number
  load(before: string | undefined, signal: AbortSignal): Promise<T[]>
  /** Rows as they change. */
  follow(onRows: (rows: readonly T[]) => void): () => void
}

export interface UsedList<T extends Listed> {
  /** Absent until the first page is here. The list of another key stays until then. */
  list: LiveList<T> | undefined
  isStale: boolean
  error: unknown
  isLoadingMore: boolean
  loadMore(): void
  showNew(): void
  reload(): void
  /** After an error: loads what could not be loaded. */
  retry(): void
  remove(id: string): void
  /** Changes a row that is here. */
  patch(id: string, changes: Partial<T>): void
}

export function useLiveList<T extends Listed>(source: ListSource<T>, isAtTop: () => boolean): UsedList<T> {
  const [state, setState] = useState<{ key?: string; list?: LiveList<T>; error?: unknown }>({})
  const [isLoadingMore, setLoadingMore] = useState(false)
  const [round, setRound] = useState(0)
  const now = useRef({ source, isAtTop })
  useEffect(() => {
    now.current = { source, isAtTop }
  })
  const { key } = source
  const change = useCallback(
    (to: (list: LiveList<T>) => LiveList<T>) =>
      setState((before) =>
        before.key === key && before.list !== undefined ? { ...before, list: to(before.list) } : before,
      ),
    [key],
  )
  const apply = useCallback(
    (rows: readonly T[]) => {
      const isTop = now.current.isAtTop()
      change((list) => withChanges(list, rows, now.current.source, isTop))
    },
    [change],
  )

  useEffect(() => {
    const leave = new AbortController()
    const { load, follow, pageSize } = now.current.source
    // What changes while the first page is on its way is newer than the page.
    let early: T[] | undefined = []
    const fail = (error: unknown) => !leave.signal.aborted && setState((before) => ({ ...before, error }))
    const loadFirst = () =>
      load(undefined, leave.signal).then((rows) => {
        if (leave.signal.aborted) return
        const held = early ?? []
        early = undefined
        setState({ key, list: withChanges(firstPage(rows, pageSize), held, now.current.source, true) })
      }, fail)
    const again = () => void load(undefined, leave.signal).then(apply, () => undefined)
    setState((before) => ({ ...before, error: undefined }))
    void loadFirst()
    const stopRows = follow((rows) => (early === undefined ? apply(rows) : void early.push(...rows)))
    let { state: connection } = readConnection()
    const stopConnection = onConnection(() => {
      const { state: next } = readConnection()
      if (next === 'open' && connection !== 'open') void (early === undefined ? again() : loadFirst())
      connection = next
    })
    return () => {
      leave.abort()
      stopRows()
      stopConnection()
    }
  }, [key, round, apply])

  const { list, error } = state
  const isStale = state.key !== key
  const last = list?.hasMore === true && !isStale ? list.rows.at(-1)?.id : undefined
  const isBusy = useRef(false)
  const loadMore = useCallback(() => {
    if (last === undefined || isBusy.current) return
    isBusy.current = true
    setLoadingMore(true)
    const { load, pageSize } = now.current.source
    void load(last, new AbortController().signal)
      .then(
        (rows) => change((before) => withPage(before, rows, pageSize)),
        (error: unknown) => setState((before) => (before.key === key ? { ...before, error } : before)),
      )
      .finally(() => {
        isBusy.current = false
        setLoadingMore(false)
      })
  }, [last, change, key])
  const reload = useCallback(() => setRound((n) => n + 1), [])
  const isPageMissing = error !== undefined && last !== undefined
  const retry = useCallback(() => {
    if (!isPageMissing) return reload()
    setState((before) => ({ ...before, error: undefined }))
    loadMore()
  }, [isPageMissing, reload, loadMore])
  const isOutrun = list?.isOutrun === true
  const showNew = useCallback(
    () => (isOutrun ? reload() : change((before) => shown(before, now.current.source))),
    [isOutrun, reload, change],
  )
  const remove = useCallback((id: string) => change((before) => without(before, id)), [change])
  const patch = useCallback(
    (id: string, changes: Partial<T>) => change((before) => patched(before, id, changes)),
    [change],
  )
  return { list, isStale, error, isLoadingMore, loadMore, showNew, reload, retry, remove, patch }
}
