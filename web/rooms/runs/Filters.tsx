/** Which runs are listed: all of it stands in the URL. */
import { useState, type Ref } from 'react'
import { useAgents } from '../../data/hooks.ts'
import type { Query } from '../../data/query.ts'
import { Button } from '../../kit/Button.tsx'
import { UserFilter } from '../../kit/UserFilter.tsx'
import { SearchField } from '../../kit/SearchField.tsx'
import { stateWords } from '../../kit/status-words.ts'
import { isChosen, sinceChoices, withToggled, type RunFilter } from './run-filter.ts'
import css from './Filters.module.css'

interface Props {
  query: Query
  filter: RunFilter
  isNarrow: boolean
  /** Whose runs may be asked for. Absent: the runs are all of one. */
  users: readonly string[] | undefined
  search: Ref<HTMLInputElement>
}

export function Filters({ query, filter, isNarrow, users, search }: Props) {
  const [isOpen, setOpen] = useState(false)
  const chosen =
    Number(filter.status.length > 0) +
    [filter.agent, filter.since, filter.user].filter((each) => each !== undefined).length
  return (
    <search className={css.bar} aria-label="Runs">
      <SearchField
        value={filter.q ?? ''}
        label="Find in runs"
        onChange={(q) => query.set({ q, sel: undefined }, { replace: true })}
        ref={search}
      />
      {isNarrow && (
        <Button icon="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {chosen === 0 ? 'Filter' : `Filter · ${chosen}`}
        </Button>
      )}
      {(!isNarrow || isOpen) && <Choices query={query} filter={filter} users={users} />}
    </search>
  )
}

function Choices({ query, filter, users }: Pick<Props, 'query' | 'filter' | 'users'>) {
  const agents = useAgents().value?.agents ?? []
  const { status, agent, since } = filter
  const isOther = since !== undefined && !sinceChoices.some(([value]) => value === since)
  return (
    <>
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
      {users !== undefined && <UserFilter users={users} />}
      <select
        aria-label="Started"
        className={css.select}
        value={since ?? ''}
        onChange={(event) => query.set({ since: event.target.value, sel: undefined })}
      >
        {isOther && <option value={since}>Since {since}</option>}
        {sinceChoices.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </>
  )
}
