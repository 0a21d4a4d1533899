/** Which runs are listed: all of it stands in the URL. */
import { lazy, Suspense, useState, type Ref } from 'react'
import { useAgents } from '../../data/hooks.ts'
import { useMedia } from '../../data/media.ts'
import type { Query } from '../../data/query.ts'
import { Button } from '../../kit/Button.tsx'
import { Icon } from '../../kit/Icon.tsx'
import { moment } from '../../kit/format.ts'
import { UserFilter } from '../../kit/UserFilter.tsx'
import { SearchField } from '../../kit/SearchField.tsx'
import { stateWords } from '../../kit/status-words.ts'
import type { RunRow } from '../../../src/part/log.ts'
import { sayRange } from './ranges.ts'
import { isChosen, sinceChoices, sinceTime, withToggled, type RunFilter } from './run-filter.ts'
import { ViewMenu } from './ViewMenu.tsx'
import css from './Filters.module.css'

const FilterDialog = lazy(() => import('./FilterDialog.tsx'))

interface Props {
  query: Query
  filter: RunFilter
  /** Rows have columns. */
  hasColumns: boolean
  hasOwners: boolean
  /** Whose runs may be asked for: those that were seen. */
  users: readonly string[]
  rows: readonly RunRow[]
  search: Ref<HTMLInputElement>
  onDown(): void
  /** `9 of 316`. */
  count: string
}

export function Filters({ query, filter, hasColumns, hasOwners, users, rows, search, onDown, count }: Props) {
  const [isOpen, setOpen] = useState(false)
  const [wasOpen, setWasOpen] = useState(false)
  const isWide = useMedia('(min-width: 1180px)')
  const hasChips = useMedia('(min-width: 900px)')
  const chips = chipsOf(filter, isWide, hasChips)
  return (
    <search className={css.bar} aria-label="Runs">
      <SearchField
        value={filter.q ?? ''}
        label="Find in runs"
        onChange={(q) => query.set({ q, sel: undefined }, { replace: true })}
        onDown={onDown}
        ref={search}
      />
      {hasChips && <StatusChips query={query} filter={filter} />}
      {isWide && <Choices query={query} filter={filter} />}
      {isWide && hasOwners && <UserFilter users={users} />}
      <Button
        icon="menu"
        aria-haspopup="dialog"
        onClick={() => {
          setWasOpen(true)
          setOpen(true)
        }}
      >
        {isWide ? 'More filters' : chips.length === 0 ? 'Filter' : `Filter · ${chips.length}`}
      </Button>
      {isWide &&
        chips.map(({ words, names }) => (
          <Button
            key={words}
            className={css.chip!}
            aria-label={`Without ${words}`}
            title="Take this filter away"
            onClick={() => query.set(Object.fromEntries([...names, 'sel'].map((name) => [name, undefined])))}
          >
            {words} <Icon name="close" size={12} />
          </Button>
        ))}
      {hasColumns && (
        <output className={`${css.count} num`} aria-label="Number of runs">
          {count}
        </output>
      )}
      <ViewMenu query={query} hasColumns={hasColumns} hasOwners={hasOwners} />
      {wasOpen && (
        <Suspense>
          <FilterDialog
            isOpen={isOpen}
            query={query}
            filter={filter}
            hasOwners={hasOwners}
            users={users}
            rows={rows}
            onClose={() => setOpen(false)}
          />
        </Suspense>
      )}
    </search>
  )
}

interface Chip {
  words: string
  names: readonly string[]
}

/** The filters that are set in the dialog. On small screens that is nearly all of them. */
function chipsOf(
  { status, agent, user, since, until, ...more }: RunFilter,
  isWide: boolean,
  hasChips: boolean,
): Chip[] {
  const { model, client, cost, took } = more
  const found: (Chip | false)[] = [
    !hasChips && status.length > 0 && { words: 'status', names: ['status'] },
    !isWide && agent !== undefined && { words: agent, names: ['agent'] },
    !isWide && user !== undefined && { words: user, names: ['user'] },
    !isWide && since !== undefined && { words: since, names: ['since'] },
    until !== undefined && { words: `before ${sayTime(until)}`, names: ['until'] },
    model !== undefined && { words: model, names: ['model'] },
    client !== undefined && { words: `over ${client}`, names: ['client'] },
    (cost.min ?? cost.max) !== undefined && { words: sayRange(cost, 'usd'), names: ['cost'] },
    (took.min ?? took.max) !== undefined && { words: sayRange(took, 'time'), names: ['took'] },
  ]
  return found.filter((each) => each !== false)
}

function sayTime(text: string): string {
  const time = sinceTime(text, Date.now())
  return time === undefined ? text : moment(time).slice(0, 16)
}

export function StatusChips({ query, filter: { status } }: Pick<Props, 'query' | 'filter'>) {
  return (
    <fieldset className={css.chips} aria-label="Status">
      {stateWords.map((word) => (
        <Button
          key={word}
          aria-pressed={isChosen(status, word)}
          onClick={() => query.set({ status: withToggled(status, word), sel: undefined })}
        >
          {word}
        </Button>
      ))}
    </fieldset>
  )
}

export function Choices({ query, filter: { agent, since } }: Pick<Props, 'query' | 'filter'>) {
  const agents = useAgents().value?.agents ?? []
  const isOther = since !== undefined && !sinceChoices.some(([value]) => value === since)
  return (
    <>
      <select
        aria-label="Agent"
        className={css.select}
        value={agent ?? ''}
        onChange={(event) => query.set({ agent: event.target.value, sel: undefined })}
      >
        <option value="">All agents</option>
        {agent !== undefined && !agents.some(({ id }) => id === agent) && <option value={agent}>{agent}</option>}
        {agents.map(({ id }) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
      <select
        aria-label="Started"
        className={css.select}
        value={since ?? ''}
        onChange={(event) => query.set({ since: event.target.value, until: undefined, sel: undefined })}
      >
        {isOther && <option value={since}>From {sayTime(since)}</option>}
        {sinceChoices.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </>
  )
}
