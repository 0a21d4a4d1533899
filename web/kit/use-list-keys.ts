/** The keys of a list. The selected row has the focus, so that Enter and a screen reader follow it. */
import type { RefObject } from 'react'
import type { Query } from '../data/query.ts'
import { useKeys } from '../shell/keys.ts'
import type { Keys } from '../shell/key-chords.ts'
import type { ListHandle } from './VirtualList.tsx'

interface Options {
  rows: readonly { id: string }[]
  /** The id of the selected row: `sel` of the URL. */
  sel: string | undefined
  query: Query
  handle: RefObject<ListHandle | null>
  search: RefObject<HTMLInputElement | null>
  /** What a row is: `run`. */
  what: string
  open(id: string): void
  loadMore(): void
  /** Other keys of the list. `select` selects a row by its place. */
  more?: (select: (index: number) => void, at: number) => Keys
  /** Besides letting go of the selection. */
  onEscape?: () => void
}

export function useListKeys(options: Options): void {
  const { rows, sel, query, handle, search, what, open, loadMore, more, onEscape } = options
  const at = rows.findIndex(({ id }) => id === sel)
  const select = (index: number) => {
    const row = rows[index]
    if (row === undefined) return
    query.set({ sel: row.id }, { replace: true })
    handle.current?.show(index)
    focusRow(row.id)
    if (index >= rows.length - 5) loadMore()
  }
  const next = { label: `Next ${what}`, run: () => select(at < 0 ? 0 : Math.min(rows.length - 1, at + 1)) }
  const last = { label: `Previous ${what}`, run: () => select(at < 0 ? 0 : Math.max(0, at - 1)) }
  useKeys(
    {
      j: next,
      k: last,
      ArrowDown: next,
      ArrowUp: last,
      Enter: { label: `Open the ${what}`, run: () => sel !== undefined && open(sel) },
      '/': { label: 'Find', run: () => search.current?.select() },
      Esc: {
        label: 'Let go of the selection',
        run: () => {
          query.set({ sel: undefined }, { replace: true })
          onEscape?.()
        },
      },
      ...more?.(select, at),
    },
    'List',
  )
}

/** The row may come into the page with the next frame. */
function focusRow(id: string, tries = 3): void {
  requestAnimationFrame(() => {
    const link = document.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"] a`)
    if (link !== null) link.focus({ preventScroll: true })
    else if (tries > 0) focusRow(id, tries - 1)
  })
}
