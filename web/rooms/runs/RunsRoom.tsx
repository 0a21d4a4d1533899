/** The runs of the server, live. */
import { useCallback, useEffect, useRef } from 'react'
import { useLocation } from 'wouter'
import { api } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'
import { useNarrow, useNow } from '../../data/media.ts'
import { useQuery, type Query } from '../../data/query.ts'
import { useSeesOthers } from '../../data/server.ts'
import { useLiveList } from '../../data/use-live-list.ts'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { NewRows } from '../../kit/NewRows.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { useOwners } from '../../kit/UserFilter.tsx'
import { VirtualList, type ListHandle } from '../../kit/VirtualList.tsx'
import { useMedia } from '../../data/media.ts'
import { AgentLanes } from './AgentLanes.tsx'
import { Filters } from './Filters.tsx'
import type { RunRow } from '../../../src/part/log.ts'
import { MarkBar } from './MarkBar.tsx'
import { compareRuns, fits, listPath, readFilter, type RunFilter } from './run-filter.ts'
import { RunHeads, RunLine } from './RunLine.tsx'
import { NoRuns } from './NoRuns.tsx'
import { useMark } from './useMark.ts'
import { useRunKeys } from './useRunKeys.ts'
import { useWaiting } from './useWaiting.ts'
import { WaitsForYou, type Fold } from './WaitsForYou.tsx'
import css from './RunsRoom.module.css'

const pageSize = 100

export default function RunsRoom() {
  const query = useQuery()
  const [, navigate] = useLocation()
  const filter = readFilter(query.get)
  const isNarrow = useNarrow()
  const isCoarse = useMedia('(pointer: coarse)')
  const now = useNow(1000)
  const handle = useRef<ListHandle>(null)
  const search = useRef<HTMLInputElement>(null)
  const { fold, setFold } = useFold(query, filter)
  const waiting = useWaiting(filter, fold !== 'off')
  const wantsFocusRef = useRef(false)
  const { mark, toggle, clear } = useMark()
  const { list, error, isLoadingMore, loadMore, showNew, retry } = useLiveList<RunRow>(
    {
      key: JSON.stringify(filter),
      pageSize,
      load: async (before, signal) => {
        const path = listPath(filter, { before, limit: pageSize }, Date.now())
        return (await api<{ runs: RunRow[] }>(path, { signal })).runs
      },
      follow: followRows,
      isWanted: (row) => fits(filter, row, Date.now()),
      compare: compareRuns,
    },
    useCallback(() => handle.current?.isAtTop() !== false, []),
  )
  const rows = list?.rows ?? []
  const owners = useOwners(rows)
  const hasOwners = useSeesOthers() && (owners.length > 0 || filter.user !== undefined)
  // Without the key nothing is known, not even that nothing runs.
  const isProtected = (error as { code?: unknown } | undefined)?.code === 'unauthorized'
  const sel = query.get('sel')
  const open = useCallback((id: string) => navigate(`/runs/${encodeURIComponent(id)}`), [navigate])
  const toQuestion = useCallback(() => {
    wantsFocusRef.current = true
    setFold('few')
  }, [setFold])
  useRunKeys({
    rows,
    sel,
    query,
    handle,
    search,
    open,
    mark: toggle,
    clear,
    loadMore,
    isFolded: fold === 'off',
    toQuestion,
  })
  useShownOnce(handle, rows, sel)

  return (
    <div className={css.room}>
      <h1 className="visually-hidden">Runs</h1>
      <Filters
        query={query}
        filter={filter}
        isNarrow={isNarrow}
        users={hasOwners ? owners : undefined}
        search={search}
      />
      {!isProtected && <AgentLanes query={query} isNarrow={isNarrow} />}
      {error !== undefined && <ErrorNote error={error} onRetry={retry} />}
      <div className={css.list}>
        <NewRows
          count={list?.waiting.length ?? 0}
          isOutrun={list?.isOutrun === true}
          onShow={() => {
            showNew()
            handle.current?.toTop()
          }}
        />
        <VirtualList
          rows={rows}
          rowHeight={isNarrow ? 56 : isCoarse ? 44 : 32}
          label="Runs"
          head={isNarrow || rows.length === 0 ? undefined : <RunHeads hasOwners={hasOwners} />}
          above={<WaitsForYou used={waiting} fold={fold} onFold={setFold} wantsFocusRef={wantsFocusRef} />}
          below={
            list === undefined ? (
              error === undefined && <Skeleton rows={12} />
            ) : rows.length === 0 ? (
              <NoRuns filter={filter} query={query} />
            ) : (
              isLoadingMore && <Skeleton rows={2} />
            )
          }
          handle={handle}
          hasMore={list?.hasMore === true}
          onEnd={loadMore}
        >
          {(run, place) => (
            <RunLine
              {...place}
              run={run}
              // Only what still runs, and what began just now, is drawn each second.
              now={run.status === 'running' || now - run.startedAt < 60_000 ? now : Math.floor(now / 30_000) * 30_000}
              isSelected={run.id === sel}
              isMarked={run.id === mark}
              isNarrow={isNarrow}
              hasOwners={hasOwners}
              onMark={toggle}
            />
          )}
        </VirtualList>
      </div>
      <MarkBar mark={mark} clear={clear} rows={rows} />
    </div>
  )
}

/** How much of what waits is shown. Who asks for the runs that wait wants to answer them. */
function useFold({ get, set }: Query, { status }: RunFilter): { fold: Fold; setFold(fold: Fold): void } {
  const usual: Fold = status.length === 1 && status[0] === 'suspended' ? 'few' : 'off'
  const fold = folds.find((each) => each === get('waits')) ?? usual
  const setFold = useCallback(
    (next: Fold) => set({ waits: next === usual ? undefined : next }, { replace: true }),
    [set, usual],
  )
  return { fold, setFold }
}

const folds: readonly Fold[] = ['off', 'few', 'all']

/** A link that names a row shows it. */
function useShownOnce(
  handle: React.RefObject<ListHandle | null>,
  rows: readonly RunRow[],
  sel: string | undefined,
): void {
  const isDone = useRef(false)
  const latest = useRef({ rows, sel })
  useEffect(() => {
    latest.current = { rows, sel }
  })
  const isLoaded = rows.length > 0
  useEffect(() => {
    if (!isLoaded || isDone.current) return
    isDone.current = true
    const index = latest.current.rows.findIndex(({ id }) => id === latest.current.sel)
    if (index > 0) handle.current?.show(index)
  }, [isLoaded, handle])
}
