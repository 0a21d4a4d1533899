/** The keys of a list whose rows are links: they move the focus from row to row, so that Enter opens one. */
import type { RefObject } from 'react'
import { useKeys } from '../shell/keys.ts'

interface RowKeysOptions {
  /** What a row is: `agent`. */
  what: string
  search: RefObject<HTMLInputElement | null>
}

/** The link of each row has `data-row`. Returns what leads to the first one. */
export function useRowKeys({ what, search }: RowKeysOptions): () => void {
  const move = (by: number) => {
    const rows = [...document.querySelectorAll<HTMLElement>('main [data-row]')]
    const here = rows.findIndex((row) => row.closest('li')?.contains(document.activeElement) === true)
    rows[Math.min(rows.length - 1, Math.max(0, here + by))]?.focus()
  }
  const next = { label: `Next ${what}`, run: () => move(1) }
  const last = { label: `Previous ${what}`, run: () => move(-1) }
  useKeys(
    {
      j: next,
      k: last,
      ArrowDown: next,
      ArrowUp: last,
      '/': { label: 'Find', run: () => search.current?.select() },
    },
    'List',
  )
  return () => move(1)
}
