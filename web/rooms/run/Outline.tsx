/** The steps of a run as a tree, each with its time as a bar. Only the rows that are seen are in the page. */
import { useVirtualizer } from '@tanstack/react-virtual'
import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type UIEvent,
} from 'react'
import { remember, useRemembered } from '../../data/remember.ts'
import { duration } from '../../kit/format.ts'
import { Menu } from '../../kit/Menu.tsx'
import { createRowSlots } from '../../kit/row-slots.ts'
import { axisMarks } from './layout/axis.ts'
import { MarkRow } from './MarkRow.tsx'
import { nameOf } from './selection.ts'
import { isChosen, rowName } from './layout/tree-rows.ts'
import { StepRow } from './StepRow.tsx'
import { useRowHeight } from './use-row-height.ts'
import { useZoom } from './use-zoom.ts'
import type { StepNode } from '../../../src/fold/step-tree.ts'
import type { Handles } from './use-handles.ts'
import type { Room } from './use-room.ts'
import css from './Outline.module.css'

export function Outline({ room }: { room: Room }) {
  const { rows, model, view, selection, isFollowing, follow } = room
  const { scale, now, pauses } = model
  const pane = useRef<HTMLDivElement>(null)
  const lane = useRef<HTMLDivElement>(null)
  const rowHeight = useRowHeight()
  const [hidden, hide] = useHiddenColumns()
  const width = useWidth(lane)
  useZoom(pane, room, true, () => lane.current?.getBoundingClientRect())
  const node = 'node' in selection ? selection.node : undefined
  const chosen = rows.find((each) => isChosen(each, selection))?.key
  const keys = useMemo(() => rows.map(({ key }) => key), [rows])
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => pane.current,
    estimateSize: () => rowHeight,
    // The same function until there are other rows: with another one all rows are measured again.
    getItemKey: useCallback((index: number) => keys[index]!, [keys]),
    overscan: 6,
    scrollMargin: headHeight,
    scrollPaddingStart: headHeight,
  })
  useEffect(() => list.measure(), [list, rowHeight])
  const shown = list.getVirtualItems()
  const [slots] = useState(createRowSlots)
  const slotOf = slots.place(shown[0]?.index ?? 0, shown.length)
  const isHeld = useHeld(pane, keys, rowHeight, isFollowing)
  useEffect(() => {
    if (isFollowing && rows.length > 0) list.scrollToIndex(rows.length - 1)
  }, [list, isFollowing, rows.length])
  useEffect(() => {
    if (chosen === undefined) return
    const index = rows.findIndex(({ key }) => key === chosen)
    if (index >= 0) list.scrollToIndex(index, { align: 'auto' })
    // Only when another one is chosen: rows that come later move nothing.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [list, chosen])

  const scrolled = useRef(0)
  const scroll = ({ currentTarget: { scrollTop } }: UIEvent<HTMLElement>) => {
    // Only the reader scrolls back.
    if (isFollowing && scrollTop < scrolled.current - 4 && !isHeld.current) follow(false)
    scrolled.current = scrollTop
  }
  const press = (event: KeyboardEvent<HTMLElement>) => {
    if (event.target !== event.currentTarget) return
    const index = rows.findIndex(({ key }) => key === chosen)
    const to = (i: number) => rows[Math.min(rows.length - 1, Math.max(0, i))]
    const moves = new Map([
      ['ArrowDown', index + 1],
      ['ArrowUp', index - 1],
      ['Home', 0],
      ['End', rows.length - 1],
      ['PageDown', index + 20],
      ['PageUp', index - 20],
    ])
    const target = moves.get(event.key)
    if (target !== undefined && rows.length > 0) room.select(rowName(to(target)!), true)
    else if (event.key === 'ArrowRight' && node !== undefined) room.fold(node, false)
    else if (event.key === 'ArrowLeft' && node !== undefined) {
      if (node.children.length > 0 && !room.isFolded(node)) room.fold(node, true)
      else if (node.parent !== undefined) room.select(nameOf(node.parent), true)
    } else return
    event.preventDefault()
  }
  const origin = model.whole.marks[0]?.fork?.at ?? scale.from
  const headX = (scale.toX(now) - view.from) / (view.to - view.from)

  return (
    <div className={css.outline} data-no={hidden.join(' ')}>
      <div
        ref={pane}
        className={css.pane}
        onScroll={scroll}
        onKeyDown={press}
        // The tree holds the focus: the elements of a row are another row's when one scrolls.
        onFocus={({ target, currentTarget }) =>
          target.closest('[role=rowgroup]') !== null && currentTarget.focus({ preventScroll: true })
        }
        role="treegrid"
        aria-label="Steps"
        aria-rowcount={rows.length + 1}
        aria-activedescendant={chosen === undefined ? undefined : `step-${chosen}`}
        tabIndex={0}
      >
        <div className={css.head} role="row" aria-rowindex={1}>
          <button
            type="button"
            role="columnheader"
            className={css.runName}
            data-selected={selection.kind === 'run' || selection.kind === 'none'}
            onClick={() => room.select('run')}
          >
            {model.whole.marks[0]?.note ?? 'run'}
          </button>
          <div ref={lane} className={css.axis} role="columnheader" aria-label="Time">
            {axisMarks(scale, view, width, origin).map(({ x, ms }) => (
              <span key={ms} style={{ left: `${x * 100}%` }}>
                {ms === 0 ? '0' : duration(ms)}
              </span>
            ))}
          </div>
          <div className={`${css.headTime} ${css.side}`} data-column="tokens" role="columnheader">
            tokens
          </div>
          <div className={`${css.headTime} ${css.side}`} data-column="cost" role="columnheader">
            cost
          </div>
          <div className={css.headTime} data-column="time" role="columnheader">
            <span>time</span>
            <Menu label="Columns" icon="down" look="quiet" isSticky className={css.columns}>
              {columns.map((column) => (
                <label key={column} className={css.choice}>
                  <input
                    type="checkbox"
                    checked={!hidden.includes(column)}
                    onChange={({ target }) => hide(column, !target.checked)}
                  />
                  {column}
                </label>
              ))}
            </Menu>
          </div>
        </div>
        <div className={css.body} role="rowgroup" style={{ height: list.getTotalSize() }}>
          {shown.map(({ index, start }) => {
            const { key, node: each, mark, depth } = rows[index]!
            const place = { index: index + 2, top: start - headHeight, height: rowHeight, isSelected: key === chosen }
            const lane = { scale, view, px: width, onSelect: room.select }
            if (mark !== undefined)
              return <MarkRow key={slotOf(index)} mark={mark} depth={depth} {...place} {...lane} />
            return (
              <StepRow
                key={slotOf(index)}
                node={each}
                isFolded={room.isFolded(each)}
                now={each.step.end ?? now}
                version={each.step.end === undefined ? room.snapshot.version : 0}
                pauses={pauses}
                handle={handleOf(each, room.handles)}
                onFold={room.fold}
                {...place}
                {...lane}
              />
            )
          })}
          {room.at !== undefined && headX >= 0 && headX <= 1 && (
            <div className={css.headLine} aria-hidden="true">
              <i style={{ left: `${headX * 100}%` }} />
            </div>
          )}
        </div>
      </div>
    </div>
  )
}

function handleOf({ marks }: StepNode, handles: Handles): string | undefined {
  return handles.size === 0 ? undefined : marks.map(({ seq }) => handles.get(seq)).find((each) => each !== undefined)
}

const columns = ['tokens', 'cost', 'time'] as const

/** For all runs, and remembered. */
function useHiddenColumns(): [readonly string[], (column: string, isHidden: boolean) => void] {
  const name = 'run-columns-hidden'
  const hidden = useRemembered(name)?.split(' ') ?? []
  const hide = (column: string, isHidden: boolean) => {
    const next = hidden.filter((each) => each !== column)
    if (isHidden) next.push(column)
    remember(name, next.join(' ') || undefined)
  }
  return [hidden, hide]
}

const headHeight = 24

function useWidth(element: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(600)
  useLayoutEffect(() => {
    const target = element.current!
    const observer = new ResizeObserver(() => setWidth(target.clientWidth))
    observer.observe(target)
    return () => observer.disconnect()
  }, [element])
  return width
}

/** Rows that come above those that are seen do not move them. Returns whether the pane has just been scrolled for that. */
function useHeld(
  pane: React.RefObject<HTMLElement | null>,
  keys: readonly number[],
  rowHeight: number,
  isFollowing: boolean,
) {
  const before = useRef<readonly number[]>([])
  const isHeld = useRef(false)
  useLayoutEffect(() => {
    const old = before.current
    before.current = keys
    const target = pane.current
    isHeld.current = false
    if (old === keys || target === null || isFollowing || old.length === 0) return
    // Asking for it has the browser lay out the page.
    const first = Math.floor(target.scrollTop / rowHeight)
    const key = old[first]
    if (first === 0 || key === undefined || keys[first] === key) return
    const place = keys.indexOf(key)
    if (place < 0) return
    isHeld.current = true
    target.scrollBy(0, (place - first) * rowHeight)
  })
  return isHeld
}
