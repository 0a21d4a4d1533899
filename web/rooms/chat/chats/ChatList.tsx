/** The chats of whoever is signed in, the newest first: to find one, go on with it, name it or delete it. */
import { useCallback, useEffect, useId, useRef, useState, type KeyboardEvent } from 'react'
import { Link, useLocation } from 'wouter'
import type { ThreadRow } from '../../../../src/part/thread.ts'
import { api } from '../../../data/client.ts'
import { followThreads } from '../../../data/follow-threads.ts'
import { followTitles } from '../../../data/live.ts'
import { useMedia, useNow } from '../../../data/media.ts'
import { useQuery } from '../../../data/query.ts'
import { useMayDelete, useServer, useThreadName } from '../../../data/server.ts'
import { useLiveList } from '../../../data/use-live-list.ts'
import { Button } from '../../../kit/Button.tsx'
import { DeleteThread } from '../../../kit/DeleteThread.tsx'
import { ErrorNote } from '../../../kit/ErrorNote.tsx'
import { Icon } from '../../../kit/Icon.tsx'
import { NewRows } from '../../../kit/NewRows.tsx'
import { SearchField } from '../../../kit/SearchField.tsx'
import { Skeleton } from '../../../kit/Skeleton.tsx'
import { focusRow } from '../../../kit/use-list-keys.ts'
import { VirtualList, type ListHandle } from '../../../kit/VirtualList.tsx'
import { ChatLine } from './ChatLine.tsx'
import { nextPlace } from './next-place.ts'
import css from './Chats.module.css'

interface Props {
  agent: string
  agents: readonly string[]
  /** Absent: it cannot be folded. */
  onFold: (() => void) | undefined
  /** A chat was chosen. */
  onFound(): void
}

const pageSize = 50

export default function ChatList({ agent, agents, onFold, onFound }: Props) {
  const { facts } = useServer()
  if (facts === undefined) return <Skeleton rows={8} />
  return <Listed user={facts.user?.id ?? ''} {...{ agent, agents, onFold, onFound }} />
}

function Listed({ user, agent, agents, onFold, onFound }: Props & { user: string }) {
  const query = useQuery()
  const [, navigate] = useLocation()
  const [q, setQ] = useState('')
  const [doomed, setDoomed] = useState<ThreadRow>()
  const [renamed, setRenamed] = useState<string>()
  const [menuOf, setMenuOf] = useState<ThreadRow>()
  const [focused, setFocused] = useState<string>()
  const isCoarse = useMedia('(pointer: coarse)')
  const now = useNow(5000)
  const handle = useRef<ListHandle>(null)
  const menu = useId()
  const nameOf = useThreadName()
  const mayDelete = useMayDelete()
  const current = query.get('thread')
  const load = async (limit: number, before?: string, signal?: AbortSignal) => {
    const given = Object.entries({ q, user, before: before ?? '' }).filter(([, value]) => value !== '')
    const path = `/api/threads?${new URLSearchParams([...given, ['limit', String(limit)]])}`
    return (await api<{ threads: ThreadRow[] }>(path, signal === undefined ? {} : { signal })).threads
  }
  const { list, isStale, error, isLoadingMore, loadMore, showNew, retry, remove, patch } = useLiveList<ThreadRow>(
    {
      key: JSON.stringify([q, user]),
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
  const inTabOrder = rows.some(({ id }) => id === focused)
    ? focused
    : (rows.find(({ id }) => id === current) ?? rows[0])?.id
  const isMine = ({ id }: ThreadRow) => mayDelete(nameOf(id).owner)
  const hrefOf = ({ id, agents: had }: ThreadRow) => {
    const last = had.find((each) => agents.includes(each))
    // Nobody can go on with an agent that is gone.
    return last === undefined
      ? `/threads/${encodeURIComponent(id)}`
      : `/chat/${encodeURIComponent(last)}?thread=${encodeURIComponent(id)}`
  }
  const press = (event: KeyboardEvent) => {
    const at = rows.findIndex(
      ({ id }) => id === (event.target as Element).closest('[data-id]')?.getAttribute('data-id'),
    )
    const row = rows[at]
    if (row === undefined || !(event.target instanceof HTMLAnchorElement)) return
    const next = nextPlace(event.key, at, rows.length)
    if (event.key === 'F2' && isMine(row)) setRenamed(row.id)
    else if (event.key === 'Delete' && isMine(row)) setDoomed(row)
    else if (next === undefined) return
    else {
      handle.current?.show(next)
      focusRow(rows[next]!.id)
    }
    event.preventDefault()
  }
  const done = (id: string) => {
    setRenamed(undefined)
    focusRow(id)
  }
  return (
    <div className={css.chats}>
      <div className={css.top}>
        <Link href={`/chat/${encodeURIComponent(agent)}`} className={css.fresh} data-autofocus onClick={onFound}>
          <Icon name="plus" />
          New chat
        </Link>
        {onFold && <Button look="quiet" icon="left" aria-label="Fold the list of chats" onClick={onFold} />}
      </div>
      <search className={css.search} aria-label="Chats">
        <SearchField
          value={q}
          label="Find in chats"
          hasKey={false}
          onChange={setQ}
          onDown={() => rows[0] !== undefined && focusRow(rows[0].id)}
        />
      </search>
      {error !== undefined && <ErrorNote error={error} onRetry={retry} />}
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- The rows have the focus. */}
      <div
        className={css.list}
        onKeyDown={press}
        onFocus={({ target }) => setFocused(target.closest('[data-id]')?.getAttribute('data-id') ?? undefined)}
      >
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
          rowHeight={isCoarse ? 60 : 48}
          label="Chats"
          below={
            list === undefined ? (
              error === undefined && <Skeleton rows={8} />
            ) : rows.length === 0 && !isStale ? (
              <p className={css.none}>{q === '' ? 'No chats yet.' : 'No chat has these words.'}</p>
            ) : (
              isLoadingMore && <Skeleton rows={2} />
            )
          }
          handle={handle}
          hasMore={list?.hasMore === true}
          onEnd={loadMore}
        >
          {(thread, place) => (
            <ChatLine
              {...place}
              thread={thread}
              now={now}
              href={hrefOf(thread)}
              agent={agent}
              isCurrent={thread.id === current}
              isInTabOrder={thread.id === inTabOrder}
              isRenamed={thread.id === renamed}
              menu={isMine(thread) ? menu : undefined}
              hasMenu={menuOf?.id === thread.id}
              onMenu={setMenuOf}
              onOpen={onFound}
              onDone={done}
            />
          )}
        </VirtualList>
      </div>
      <div id={menu} popover="auto" className={css.menu}>
        <Button
          look="quiet"
          popoverTarget={menu}
          popoverTargetAction="hide"
          aria-keyshortcuts="F2"
          onClick={() => setRenamed(menuOf?.id)}
        >
          Rename
        </Button>
        <Button look="danger" popoverTarget={menu} popoverTargetAction="hide" onClick={() => setDoomed(menuOf)}>
          Delete
        </Button>
      </div>
      <DeleteThread
        thread={doomed}
        onClose={() => setDoomed(undefined)}
        onDeleted={(id) => {
          setDoomed(undefined)
          remove(id)
          if (id === current) navigate(`/chat/${encodeURIComponent(agent)}`, { replace: true })
        }}
      />
    </div>
  )
}
