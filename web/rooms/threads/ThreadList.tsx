/** The conversations of the server, newest first. */
import { useCallback, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import type { ThreadRow } from '../../../src/part/thread.ts'
import { api } from '../../data/client.ts'
import { followThreads } from '../../data/follow-threads.ts'
import { useAgents } from '../../data/hooks.ts'
import { followTitles } from '../../data/live.ts'
import { useMedia, useLow, useNarrow, useNow } from '../../data/media.ts'
import { useQuery } from '../../data/query.ts'
import { useSeesOthers, useThreadName } from '../../data/server.ts'
import { useLiveList } from '../../data/use-live-list.ts'
import { Button } from '../../kit/Button.tsx'
import { DeleteThread } from '../../kit/DeleteThread.tsx'
import { Empty } from '../../kit/Empty.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { NewRows } from '../../kit/NewRows.tsx'
import { SearchField } from '../../kit/SearchField.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { useListKeys } from '../../kit/use-list-keys.ts'
import { UserFilter, useOwners } from '../../kit/UserFilter.tsx'
import { VirtualList, type ListHandle } from '../../kit/VirtualList.tsx'
import { ThreadHeads, ThreadLine, threadStatusOf, threadWords } from './ThreadLine.tsx'
import css from './ThreadList.module.css'

const pageSize = 50

export function ThreadList() {
  const query = useQuery()
  const [, navigate] = useLocation()
  const [q, agent, user, status, sel] = ['q', 'agent', 'user', 'status', 'sel'].map(query.get)
  const isLow = useLow()
  const isNarrow = useNarrow() && !isLow
  const isCoarse = useMedia('(pointer: coarse)')
  const now = useNow(5000)
  const handle = useRef<ListHandle>(null)
  const search = useRef<HTMLInputElement>(null)
  const [doomed, setDoomed] = useState<ThreadRow>()
  const isFiltered = [q, agent, user, status].some((each) => each !== undefined)
  const load = async (limit: number, before?: string, signal?: AbortSignal) => {
    const given = Object.entries({ q, agent, user, status: threadStatusOf(status), before }).filter(
      (each): each is [string, string] => each[1] !== undefined,
    )
    const path = `/api/threads?${new URLSearchParams([...given, ['limit', String(limit)]])}`
    return (await api<{ threads: ThreadRow[] }>(path, signal === undefined ? {} : { signal })).threads
  }
  const { list, error, isLoadingMore, loadMore, showNew, retry, remove, patch } = useLiveList<ThreadRow>(
    {
      key: JSON.stringify([q, agent, user, status]),
      pageSize,
      load: (before, signal) => load(pageSize, before, signal),
      follow: (onRows) => followThreads(load, onRows),
      isWanted: () => true,
      compare: (a, b) => b.updatedAt - a.updatedAt,
    },
    useCallback(() => handle.current?.isAtTop() !== false, []),
  )
  useEffect(() => followTitles(({ id, title }) => patch(id, { title })), [patch])
  const rows = list?.rows ?? []
  const nameOf = useThreadName()
  const owners = useOwners(rows.map(({ id }) => nameOf(id)))
  const hasOwners = useSeesOthers() && (owners.length > 0 || user !== undefined)
  const toFirst = useListKeys({
    rows,
    query,
    handle,
    search,
    loadMore,
    what: 'thread',
    open: (id) => navigate(`/threads/${encodeURIComponent(id)}`),
  })
  return (
    <div className={css.room}>
      <h1 className="visually-hidden">Threads</h1>
      <search className={css.bar} aria-label="Threads">
        <SearchField
          value={q ?? ''}
          label="Find in threads"
          onChange={(text) => query.set({ q: text, sel: undefined }, { replace: true })}
          onDown={toFirst}
          ref={search}
        />
        <Choice name="status" label="Status" all="Any status" values={threadWords} />
        <AgentChoice />
        {hasOwners && <UserFilter users={owners} />}
      </search>
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
          rowHeight={isNarrow ? 56 : isCoarse ? 44 : isLow ? 28 : 32}
          label="Threads"
          head={isNarrow || rows.length === 0 ? undefined : <ThreadHeads hasOwners={hasOwners} />}
          below={
            list === undefined ? (
              error === undefined && <Skeleton rows={12} />
            ) : rows.length === 0 ? (
              <NoThreads
                isFiltered={isFiltered}
                showAll={() => query.set({ q: undefined, agent: undefined, user: undefined, status: undefined })}
              />
            ) : (
              isLoadingMore && <Skeleton rows={2} />
            )
          }
          handle={handle}
          hasMore={list?.hasMore === true}
          onEnd={loadMore}
        >
          {(thread, place) => (
            <ThreadLine
              {...place}
              thread={thread}
              now={now}
              isSelected={thread.id === sel}
              isNarrow={isNarrow}
              hasOwners={hasOwners}
              onDelete={setDoomed}
            />
          )}
        </VirtualList>
      </div>
      <DeleteThread
        thread={doomed}
        onClose={() => setDoomed(undefined)}
        onDeleted={(id) => {
          setDoomed(undefined)
          remove(id)
        }}
      />
    </div>
  )
}

function AgentChoice() {
  const agents = useAgents().value?.agents ?? []
  return <Choice name="agent" label="Agent" all="All agents" values={agents.map(({ id }) => id)} />
}

/** One of the values, in the URL. */
function Choice({ name, label, all, values }: { name: string; label: string; all: string; values: readonly string[] }) {
  const { get, set } = useQuery()
  const value = get(name)
  const listed = value === undefined || values.includes(value) ? values : [value, ...values]
  return (
    <select
      aria-label={label}
      className={css.select}
      value={value ?? ''}
      onChange={(event) => set({ [name]: event.target.value, sel: undefined })}
    >
      <option value="">{all}</option>
      {listed.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  )
}

function NoThreads({ isFiltered, showAll }: { isFiltered: boolean; showAll(): void }) {
  if (!isFiltered) return <Empty title="No threads yet.">A chat, and every run, begins one.</Empty>
  return (
    <Empty title="No thread fits this filter.">
      <Button onClick={showAll}>Show all threads</Button>
    </Empty>
  )
}
