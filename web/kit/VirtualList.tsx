/** A list of any length in a scrolled pane: only what is seen is in the page. All rows have the same height. */
import { useVirtualizer } from '@tanstack/react-virtual'
import {
  Fragment,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
  type ReactNode,
  type Ref,
} from 'react'
import css from './VirtualList.module.css'

export interface ListHandle {
  isAtTop(): boolean
  toTop(): void
  /** Scrolls no further than needed. */
  show(index: number): void
}

/** Where a row stands. Plain numbers, so that a row that has not changed is not drawn again. */
export interface RowPosition {
  /** Counts from 1, the head included. */
  rowIndex: number
  top: number
  height: number
}

export function placeOf({ rowIndex, top, height }: RowPosition, className = '') {
  const style = { height, transform: `translateY(${top}px)` }
  return { 'aria-rowindex': rowIndex, className: `${css.row} ${className}`, style }
}

interface Props<T extends { id: string }> {
  rows: readonly T[]
  rowHeight: number
  /** Describes the list to readers who hear it. */
  label: string
  /** The heads of the columns: a `<tr>`. */
  head?: ReactNode
  /** Stands above the rows and scrolls with them. */
  above?: ReactNode
  /** Stands below the last row. */
  below?: ReactNode
  /** A `<tr>` with the props of {@link placeOf}. */
  children: (row: T, place: RowPosition) => ReactNode
  /** The end is near. */
  onEnd?: () => void
  handle?: Ref<ListHandle>
  hasMore?: boolean
}

export function VirtualList<T extends { id: string }>(props: Props<T>) {
  const { rows, rowHeight, label, head, above, below, children, onEnd, handle, hasMore = false } = props
  const pane = useRef<HTMLDivElement>(null)
  const body = useRef<HTMLTableSectionElement>(null)
  const [margin, setMargin] = useState(0)
  const heads = head === undefined ? 0 : 1
  // oxlint-disable-next-line react/incompatible-library -- The page is not compiled by the React Compiler.
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => pane.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => rows[index]!.id,
    overscan: 10,
    scrollMargin: margin,
    scrollPaddingStart: heads * 28,
  })
  useEffect(() => list.measure(), [list, rowHeight])
  // What stands above may grow: the rows begin below it.
  useLayoutEffect(() => {
    const measure = () => setMargin(body.current!.offsetTop)
    measure()
    const observer = new ResizeObserver(measure)
    for (const child of pane.current!.children) observer.observe(child)
    return () => observer.disconnect()
  }, [])
  useImperativeHandle(handle, () => ({
    isAtTop: () => (pane.current?.scrollTop ?? 0) < rowHeight / 2,
    toTop: () => pane.current?.scrollTo({ top: 0 }),
    show: (index) => list.scrollToIndex(index, { align: 'auto' }),
  }))
  const items = list.getVirtualItems()
  const lastSeen = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (hasMore && lastSeen >= rows.length - 20) onEnd?.()
  }, [hasMore, lastSeen, rows.length, onEnd])
  return (
    <div ref={pane} className={css.pane} data-testid="list-pane">
      <div className={css.above}>{above}</div>
      <table className={css.table} aria-label={label} aria-rowcount={hasMore ? -1 : rows.length + heads}>
        {head !== undefined && <thead className={css.head}>{head}</thead>}
        <tbody ref={body} className={css.body} style={{ height: list.getTotalSize() }}>
          {items.map(({ index, key, start }) => (
            <Fragment key={key}>
              {children(rows[index]!, { rowIndex: index + 1 + heads, top: start - margin, height: rowHeight })}
            </Fragment>
          ))}
        </tbody>
      </table>
      {below}
    </div>
  )
}
