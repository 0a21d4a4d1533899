/** The keys of a list. The selected row has the focus, so that Enter and a screen reader follow it. */
import type { RefObject } from 'react'
import type { Query } from '../data/query.ts'
import { useKeys } from '../shell/keys.ts'
import type { Keys } from '../shell/key-chords.ts'
import type { ListHandle } from './VirtualList.tsx'

interface ListKeysOptions {
  rows: readonly { id: string }[]
  query: Query
  handle: RefObject<ListHandle | null>
  search: RefObject<HTMLInputElement | null>
  /** What a row is: `run`. */
  what: string
  open(id: string): void
  loadMore(): void
  /** Other keys of the list. `select` selects a row by its place; `selected` is the id of the selected one. */
  more?: (select: (index: number) => void, selected: () => string | undefined) => Keys
  /** Besides letting go of the selection. */
  onEscape?: () => void
}

/** Returns what leads to the first row. */
export function useListKeys(options: ListKeysOptions): () => void {
  const { rows, query, handle, search, what, open, loadMore, more, onEscape } = options
  // `sel` of the address: a key may come before what the key before it has changed is drawn.
  const selected = () => new URLSearchParams(location.search).get('sel') ?? undefined
  const place = (id: string | undefined) => rows.findIndex((row) => row.id === id)
  const select = (index: number) => {
    const row = rows[index]
    if (row === undefined) return
    query.set({ sel: row.id }, { replace: true })
    handle.current?.show(index)
    focusRow(row.id)
    if (index >= rows.length - 5) loadMore()
  }
  const next = { label: `Next ${what}`, run: () => select(Math.min(rows.length - 1, place(selected()) + 1)) }
  const last = { label: `Previous ${what}`, run: () => select(Math.max(0, place(selected()) - 1)) }
  useKeys(
    {
      j: next,
      k: last,
      ArrowDown: next,
      ArrowUp: last,
      Enter: {
        label: `Open the ${what}`,
        run: () => {
          const id = selected()
          if (id !== undefined) open(id)
        },
      },
      '/': { label: 'Find', run: () => search.current?.select() },
      Esc: {
        label: 'Clear the selection',
        run: () => {
          query.set({ sel: undefined }, { replace: true })
          onEscape?.()
        },
      },
      ...more?.(select, selected),
    },
    'List',
  )
  return () => select(0)
}

/** The row may come into the page with the next frame. Until then no other row has the focus, which would take Enter. */
export function focusRow(id: string, tries = 3): void {
  const link = document.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"] a`)
  if (link !== null) return link.focus({ preventScroll: true })
  if (document.activeElement instanceof HTMLAnchorElement) document.activeElement.blur()
  if (tries > 0) requestAnimationFrame(() => focusRow(id, tries - 1))
}
