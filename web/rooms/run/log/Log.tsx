/** The entries of a run, of any number: only rows that are seen are in the page, and only what they say is read. */
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState, type UIEvent } from 'react'
import { Button } from '../../../kit/Button.tsx'
import { ErrorNote } from '../../../kit/ErrorNote.tsx'
import { count } from '../../../kit/format.ts'
import { createRowSlots } from '../../../kit/row-slots.ts'
import { logRows, rowAt, rowsUntil, type LogRow } from '../../../../src/fold/log-rows.ts'
import { useRowHeight } from '../use-row-height.ts'
import type { Room } from '../use-room.ts'
import type { FoundEntry } from './find.ts'
import { families, readTypes, toggleFamily } from './families.ts'
import { LogRowView } from './LogRowView.tsx'
import { useContent } from './use-content.ts'
import { mostFound, useFind } from './use-find.ts'
import css from './Log.module.css'

export function Log({ room }: { room: Room }) {
  const { query, model, selection, snapshot, seq, isFollowing, follow } = room
  const chosen = query.get('types')
  const types = useMemo(() => readTypes(chosen), [chosen])
  const words = query.get('q')
  const found = useFind(room.id, words, useSettled(seq, words === undefined))
  const { items } = snapshot
  const all = useMemo(() => {
    const each = found.entries?.map(toRow) ?? logRows(items)
    return types === undefined ? each : each.filter(({ type }) => types.has(type))
  }, [items, types, found.entries])
  const { at } = room
  const rows = useMemo(() => (at === undefined ? all : rowsUntil(all, at)), [all, at])
  const said = useMemo(() => new Map(found.entries?.map(({ seq: to, text }) => [to, text])), [found.entries])

  const pane = useRef<HTMLDivElement>(null)
  const rowHeight = useRowHeight()
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => pane.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  })
  useEffect(() => list.measure(), [list, rowHeight])
  const shown = list.getVirtualItems()
  const [slots] = useState(createRowSlots)
  const slotOf = slots.place(shown[0]?.index ?? 0, shown.length)
  const content = useContent(room, found.entries === undefined ? rows : nothing, {
    first: shown[0]?.index ?? 0,
    last: shown.at(-1)?.index ?? 0,
    types: chosen,
  })
  const selected = selection.kind === 'entry' ? rowAt(rows, selection.seq) : -1
  const selectedSeq = selection.kind === 'entry' ? selection.seq : undefined
  const isReady = rows.length > 0
  useEffect(() => {
    if (selectedSeq !== undefined && isReady) list.scrollToIndex(Math.max(0, selected), { align: 'auto' })
    // When another one is selected, not when rows come.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [list, selectedSeq, isReady])
  useEffect(() => {
    if ((isFollowing || room.at !== undefined) && rows.length > 0) list.scrollToIndex(rows.length - 1)
  }, [list, isFollowing, room.at, rows.length])
  const scrolled = useRef(0)
  const scroll = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: UIEvent<HTMLElement>) => {
    if (isFollowing && scrollTop < scrolled.current - 4 && scrollTop + clientHeight < scrollHeight - 2 * rowHeight)
      follow(false)
    scrolled.current = scrollTop
  }
  const start = model.tree.marks[0]?.at ?? model.facts.startedAt
  const fork = model.tree.marks[0]?.fork

  return (
    <section className={css.log} aria-label="Log">
      <div className={css.bar}>
        <div className={css.families} role="group" aria-label="Types of entries">
          {families.map((family) => (
            <button
              key={family.name}
              type="button"
              className={css.family}
              aria-pressed={types !== undefined && family.types.every((type) => types.has(type))}
              onClick={() => query.set({ types: toggleFamily(types, family.types) }, { replace: true })}
            >
              {family.name}
            </button>
          ))}
        </div>
        <Find key={room.id} words={words} onChange={(next) => query.set({ q: next }, { replace: true })} />
        <span className={css.count} aria-live="polite">
          {found.isLooking ? 'searching…' : `${count(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}`}
        </span>
      </div>
      {found.error !== undefined && <ErrorNote error={found.error} />}
      {found.isCut && <p className={css.cut}>Only the first {count(mostFound)} are here. Add words to find fewer.</p>}
      <div
        ref={pane}
        className={css.pane}
        role="listbox"
        aria-label="Entries"
        aria-activedescendant={rows[selected] && `entry-${rows[selected].seq}`}
        tabIndex={0}
        onScroll={scroll}
        onKeyDown={(event) => {
          const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
          if (by === 0 || rows.length === 0) return
          event.preventDefault()
          room.select(String(rows[Math.min(rows.length - 1, Math.max(0, selected + by))]!.seq), true)
        }}
      >
        <div className={css.body} style={{ height: list.getTotalSize() }}>
          {shown.map(({ index, start: top }) => {
            const row = rows[index]!
            return (
              <LogRowView
                key={slotOf(index)}
                row={row}
                top={top}
                height={rowHeight}
                offset={row.at - (fork !== undefined && row.seq > fork.seq ? fork.at : start)}
                isSelected={index === selected}
                text={found.entries === undefined ? content(index) : said.get(row.to)}
                onSelect={room.select}
              />
            )
          })}
        </div>
        {rows.length === 0 && snapshot.isLoaded && !found.isLooking && <p className={css.empty}>No entry fits.</p>}
      </div>
    </section>
  )
}

const nothing: readonly LogRow[] = []

function toRow({ seq, firstSeq, type, step, timestamp: at }: FoundEntry): LogRow {
  return { seq: firstSeq, to: seq, type, step, at, note: undefined, id: undefined, failed: false }
}

/** While a log is searched it may grow and the scrubber move: the search begins again when that has settled. */
function useSettled(value: number, isOff: boolean): number {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    if (isOff) return
    const timer = setTimeout(() => setSettled(value), 500)
    return () => clearTimeout(timer)
  }, [value, isOff])
  return isOff ? 0 : settled
}

function Find({ words = '', onChange }: { words: string | undefined; onChange: (words: string | undefined) => void }) {
  return (
    <label className={css.find}>
      <span className="visually-hidden">Find in the log</span>
      <input
        type="search"
        data-log-find
        placeholder="Find  /"
        value={words}
        onChange={(event) => onChange(event.target.value === '' ? undefined : event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          onChange(undefined)
          event.currentTarget.blur()
        }}
      />
      {words !== '' && <Button look="quiet" icon="close" aria-label="Clear" onClick={() => onChange(undefined)} />}
    </label>
  )
}
