/** The keys of the list. The selected row has the focus, so that Enter and a screen reader follow it. */
import type { RefObject } from 'react'
import type { Query } from '../../data/query.ts'
import type { ListHandle } from '../../kit/VirtualList.tsx'
import { useKeys } from '../../shell/keys.ts'
import type { RunRow } from '../../../src/part/log.ts'

interface Options {
  rows: readonly RunRow[]
  sel: string | undefined
  query: Query
  handle: RefObject<ListHandle | null>
  search: RefObject<HTMLInputElement | null>
  open(id: string): void
  mark(id: string): void
  clear(): void
  loadMore(): void
}

export function useRunKeys({ rows, sel, query, handle, search, open, mark, clear, loadMore }: Options): void {
  const at = rows.findIndex(({ id }) => id === sel)
  const select = (index: number) => {
    const row = rows[index]
    if (row === undefined) return
    query.set({ sel: row.id }, { replace: true })
    handle.current?.show(index)
    focusRow(row.id)
    if (index >= rows.length - 5) loadMore()
  }
  const next = () => select(at < 0 ? 0 : Math.min(rows.length - 1, at + 1))
  const last = () => select(at < 0 ? 0 : Math.max(0, at - 1))
  const isFailed = ({ status, errors = 0 }: RunRow) => status === 'failed' || errors > 0
  useKeys(
    {
      j: { label: 'Next run', run: next },
      k: { label: 'Previous run', run: last },
      ArrowDown: { label: 'Next run', run: next },
      ArrowUp: { label: 'Previous run', run: last },
      Enter: { label: 'Open the run', run: () => sel !== undefined && open(sel) },
      x: { label: 'Mark to compare', run: () => sel !== undefined && mark(sel) },
      e: { label: 'Next failed run', run: () => select(rows.findIndex((row, i) => i > at && isFailed(row))) },
      o: {
        label: 'First open question',
        run: () => {
          handle.current?.toTop()
          document.querySelector<HTMLElement>('[data-question] :is(button, a)')?.focus()
        },
      },
      '/': { label: 'Find', run: () => search.current?.select() },
      Esc: {
        label: 'Let go of the selection and the marks',
        run: () => {
          clear()
          query.set({ sel: undefined, mark: undefined }, { replace: true })
        },
      },
    },
    'Runs',
  )
}

/** The row may come into the page with the next frame. */
export function focusRow(id: string, tries = 3): void {
  requestAnimationFrame(() => {
    const link = document.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"] a`)
    if (link !== null) link.focus({ preventScroll: true })
    else if (tries > 0) focusRow(id, tries - 1)
  })
}
