/** The heads of the columns. A press on one sorts by it; another one turns the order around; the third ends it. */
import type { RunSort } from '../../../src/part/log.ts'
import type { Query } from '../../data/query.ts'
import type { Column } from './columns.ts'
import type { RunFilter } from './run-filter.ts'
import css from './RunLine.module.css'

interface Props {
  shown: readonly Column[]
  grid: string
  filter: Pick<RunFilter, 'sort' | 'order'>
  query: Query
  marked: 'none' | 'some' | 'all'
  onMarkAll(): void
}

export function RunHeads({ shown, grid, filter, query, marked, onMarkAll }: Props) {
  return (
    <tr className={css.row} style={{ gridTemplateColumns: grid }}>
      <th scope="col" className={css.mark}>
        <input
          type="checkbox"
          aria-label="Mark all rows"
          checked={marked === 'all'}
          ref={(box) => {
            if (box !== null) box.indeterminate = marked === 'some'
          }}
          onChange={onMarkAll}
        />
      </th>
      {shown.map(({ id, name, sort, title, isNumber, isCompact }) => (
        <th
          key={id}
          scope="col"
          title={title}
          className={isNumber ? css.number : css[id]}
          aria-sort={
            sort === undefined || sort !== (filter.sort ?? 'started')
              ? undefined
              : filter.order === 'asc'
                ? 'ascending'
                : 'descending'
          }
        >
          {sort === undefined ? (
            <span className={isCompact && 'visually-hidden'}>{name}</span>
          ) : (
            <button type="button" onClick={() => query.set(sorted(filter, sort))}>
              {name}
              {sort === filter.sort && <span aria-hidden="true">{filter.order === 'asc' ? ' ↑' : ' ↓'}</span>}
            </button>
          )}
        </th>
      ))}
    </tr>
  )
}

/** Newest first is how runs come: no address has it. */
export function sorted({ sort, order }: Pick<RunFilter, 'sort' | 'order'>, by: RunSort) {
  const now = sort ?? 'started'
  if (by !== now) return { sort: by, order: undefined }
  if (order === 'desc') return { sort: by, order: 'asc' }
  return { sort: undefined, order: undefined }
}
