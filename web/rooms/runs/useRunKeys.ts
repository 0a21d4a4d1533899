/** The keys of the list of runs. */
import type { RefObject } from 'react'
import type { RunRow } from '../../../src/part/log.ts'
import type { Query } from '../../data/query.ts'
import { copyText } from '../../kit/copy-text.ts'
import { notice } from '../../kit/notice.ts'
import { useListKeys } from '../../kit/use-list-keys.ts'
import type { ListHandle } from '../../kit/VirtualList.tsx'
import { focusFirst } from './WaitsForYou.tsx'

interface RunKeysOptions {
  rows: readonly RunRow[]
  query: Query
  handle: RefObject<ListHandle | null>
  search: RefObject<HTMLInputElement | null>
  open(id: string): void
  mark(run: RunRow): void
  clear(): void
  /** What waits is not shown. */
  isFolded: boolean
  /** Shows what waits, and goes there. */
  toQuestion(): void
  loadMore(): void
}

const isFailed = ({ status, errors = 0 }: RunRow) => status === 'failed' || errors > 0

/** Returns what leads to the first row. */
export function useRunKeys({ mark, clear, isFolded, toQuestion, ...list }: RunKeysOptions): () => void {
  const { rows, handle } = list
  return useListKeys({
    ...list,
    what: 'run',
    onEscape: clear,
    more: (select, selected) => ({
      x: {
        label: 'Mark the run',
        run: () => {
          const run = rows.find(({ id }) => id === selected())
          if (run !== undefined) mark(run)
        },
      },
      c: {
        label: 'Copy the id of the run',
        run: () => {
          const id = selected()
          if (id === undefined) return
          copyText(id).then(
            () => notice('Id copied'),
            () => notice('Cannot copy here'),
          )
        },
      },
      e: {
        label: 'Next failed run',
        run: () => {
          const at = rows.findIndex(({ id }) => id === selected())
          select(rows.findIndex((row, i) => i > at && isFailed(row)))
        },
      },
      o: {
        label: 'First question that waits',
        run: () => {
          handle.current?.toTop()
          if (isFolded) toQuestion()
          else focusFirst()
        },
      },
    }),
  })
}
