/** The runs of the server, live. */
import { useCallback, useEffect, useMemo, useRef } from 'react'
import { useLocation } from 'wouter'
import { messageOf } from '../../../src/part/error.ts'
import { api } from '../../data/client.ts'
import { followRows } from '../../data/live.ts'
import { useLow, useMedia, useNarrow, useNow, useWidth } from '../../data/media.ts'
import { useRemembered } from '../../data/remember.ts'
import { useQuery, type Query } from '../../data/query.ts'
import { useSeesOthers } from '../../data/server.ts'
import type { LiveList } from '../../data/live-list.ts'
import { useLiveList } from '../../data/use-live-list.ts'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { notice } from '../../kit/notice.ts'
import { NewRows } from '../../kit/NewRows.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { useOwners } from '../../kit/UserFilter.tsx'
import { VirtualList, type ListHandle } from '../../kit/VirtualList.tsx'
import { AgentLanes } from './AgentLanes.tsx'
import { gridOf, readColumns, shownColumns } from './columns.ts'
import { Filters } from './Filters.tsx'
import type { RunRow } from '../../../src/part/log.ts'
import { MarkBar } from './MarkBar.tsx'
import { compareRuns, fits, isFiltered, listPath, readFilter, type RunFilter } from './run-filter.ts'
import { RunHeads } from './RunHeads.tsx'
import { RunLine } from './RunLine.tsx'
import { NoRuns } from './NoRuns.tsx'
import { sayCount } from './say-count.ts'
import { useCount } from './useCount.ts'
import { useMarks } from './useMarks.ts'
import { useRunKeys } from './useRunKeys.ts'
import { useVerdicts } from './useVerdicts.ts'
import { columnsName } from './ViewMenu.tsx'
import { useWaiting } from './useWaiting.ts'
import { WaitsForYou, type Fold } from './WaitsForYou.tsx'
import css from './RunsRoom.module.css'

const pageSize = 100
/** Rows that are marked at once, as many as one answer has. */
const mostMarked = 1000

export default function RunsRoom() {
  const query = useQuery()
  const [, navigate] = useLocation()
  const filter = readFilter(query.get)
  const isNarrow = useNarrow()
  const isLow = useLow()
  const hasColumns = isLow || !isNarrow
  const isCoarse = useMedia('(pointer: coarse)')
  const now = useNow(1000)
  const handle = useRef<ListHandle>(null)
  const search = useRef<HTMLInputElement>(null)
  const { fold, setFold } = useFold(query, filter)
  const waiting = useWaiting(filter, fold !== 'off')
  const wantsFocusRef = useRef(false)
  const { list, error, isLoadingMore, loadMore, showNew, reload, remove, retry } = useLiveList<RunRow>(
    {
      key: JSON.stringify(filter),
      pageSize,
      load: async (before, signal) => {
        const path = listPath(filter, { before, limit: pageSize }, Date.now())
        return (await api<{ runs: RunRow[] }>(path, { signal })).runs
      },
      follow: followRows,
      isWanted: (row) => fits(filter, row, Date.now()),
      compare: compareRuns(filter),
      moves: filter.sort !== undefined && filter.sort !== 'started',
    },
    useCallback(() => handle.current?.isAtTop() !== false, []),
  )
  const rows = list?.rows ?? []
  const used = useMarks(rows)
  const { marks, toggle, clear } = used
  const { fitting, said: count, recount } = useCounts(filter, list)
  const owners = useOwners(rows)
  const hasOwners = useSeesOthers() && (owners.length > 0 || filter.user !== undefined)
  const place = useRef<HTMLDivElement>(null)
  const width = useWidth(place)
  const kept = useRemembered(columnsName)
  const chosen = query.get('cols') ?? kept
  const shown = useMemo(() => shownColumns(readColumns(chosen), width, hasOwners), [chosen, width, hasOwners])
  const grid = gridOf(shown, width)
  const verdicts = useVerdicts(hasColumns && shown.some(({ id }) => id === 'verdict'))
  // Without the key nothing is known, not even that nothing runs.
  const isProtected = (error as { code?: unknown } | undefined)?.code === 'unauthorized'
  const sel = query.get('sel')
  const open = useCallback((id: string) => navigate(`/runs/${encodeURIComponent(id)}`), [navigate])
  const toQuestion = useCallback(() => {
    wantsFocusRef.current = true
    setFold('few')
  }, [setFold])
  const toFirst = useRunKeys({
    rows,
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
  const markAllThatFit = async () => {
    if (list?.hasMore !== true) return used.add(rows)
    try {
      const path = listPath(filter, { before: undefined, limit: mostMarked }, Date.now())
      used.add((await api<{ runs: RunRow[] }>(path)).runs)
    } catch (fault) {
      notice(messageOf(fault))
    }
  }

  return (
    <div className={css.room}>
      <h1 className="visually-hidden">Runs</h1>
      <Filters
        query={query}
        filter={filter}
        hasColumns={hasColumns}
        hasOwners={hasOwners}
        users={owners}
        rows={rows}
        search={search}
        onDown={toFirst}
        count={hasColumns ? count : ''}
      />
      {!isProtected && !isLow && (
        <AgentLanes query={query} filter={filter} isNarrow={isNarrow} aside={hasColumns ? '' : count} />
      )}
      {error !== undefined && <ErrorNote error={error} onRetry={retry} />}
      <div className={css.list} ref={place}>
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
          rowHeight={hasColumns ? (isCoarse ? 44 : isLow ? 28 : 32) : 56}
          label="Runs"
          head={
            hasColumns && rows.length > 0 ? (
              <RunHeads
                shown={shown}
                grid={grid}
                filter={filter}
                query={query}
                marked={marks.size === 0 ? 'none' : rows.every(({ id }) => marks.has(id)) ? 'all' : 'some'}
                onMarkAll={() => (rows.every(({ id }) => marks.has(id)) ? clear() : used.add(rows))}
              />
            ) : undefined
          }
          above={<WaitsForYou used={waiting} fold={fold} onFold={setFold} wantsFocusRef={wantsFocusRef} />}
          below={
            list === undefined ? (
              error === undefined && <Skeleton rows={12} />
            ) : rows.length === 0 ? (
              <NoRuns filter={filter} query={query} />
            ) : isLoadingMore ? (
              <Skeleton rows={2} />
            ) : (
              filter.sort !== undefined &&
              rows.length >= mostSorted && <p className={css.end}>The newest 10,000 runs that fit are sorted.</p>
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
              isMarked={marks.has(run.id)}
              shown={hasColumns ? shown : undefined}
              grid={grid}
              hasOwners={hasOwners}
              said={verdicts.get(run.id)}
              onMark={toggle}
            />
          )}
        </VirtualList>
      </div>
      <MarkBar
        used={used}
        rows={rows}
        fitting={fitting}
        onMarkAll={() => void markAllThatFit()}
        onGone={(ids) => {
          used.remove(ids)
          if (ids.length > pageSize) reload()
          else for (const id of ids) remove(id)
          recount()
        }}
      />
    </div>
  )
}

/** Sorted by the server at most. */
const mostSorted = 10_000

/** How many runs fit, and how many there are. A list that is here to its end is counted here. */
function useCounts(filter: RunFilter, list: LiveList<RunRow> | undefined) {
  const isSome = isFiltered(filter)
  const isWhole = list !== undefined && !list.hasMore
  const fitting = useCount(isWhole || (list === undefined && isSome) ? undefined : filter)
  const all = useCount(isSome && list !== undefined ? everything : undefined)
  const here = isWhole ? { count: list.rows.length + list.waiting.length, isMore: false } : fitting.counted
  return {
    fitting: here,
    said: list === undefined ? '' : sayCount(here, isSome ? all.counted : undefined, list.rows.length),
    recount: () => {
      fitting.reload()
      all.reload()
    },
  }
}

const everything = readFilter(() => undefined)

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
