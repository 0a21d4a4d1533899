/** All filters of the list in a dialog: those for which the bar has no room. */
import { useId, useState, type ReactNode } from 'react'
import type { RunRow } from '../../../src/part/log.ts'
import { useAgents } from '../../data/hooks.ts'
import { useMedia } from '../../data/media.ts'
import type { Query } from '../../data/query.ts'
import { Button } from '../../kit/Button.tsx'
import { Dialog } from '../../kit/Dialog.tsx'
import { TimeField } from '../../kit/TimeField.tsx'
import { UserFilter } from '../../kit/UserFilter.tsx'
import { Choices, StatusChips } from './Filters.tsx'
import { writeRange, type Range } from './ranges.ts'
import { filterNames, sinceTime, type RunFilter } from './run-filter.ts'
import { columns } from './columns.ts'
import css from './FilterDialog.module.css'

interface Props {
  isOpen: boolean
  query: Query
  filter: RunFilter
  hasOwners: boolean
  users: readonly string[]
  rows: readonly RunRow[]
  onClose(): void
}

/** How runs are started, where none was seen. */
const clients = ['page', 'ui', 'openai', 'ag-ui', 'socket.io', 'api', 'cli', 'library']

export default function FilterDialog({ isOpen, query, filter, hasOwners, users, rows, onClose }: Props) {
  const isWide = useMedia('(min-width: 1180px)')
  const hasChips = useMedia('(min-width: 900px)')
  return (
    <Dialog isOpen={isOpen} title="Filter the runs" onClose={onClose} className={css.dialog!}>
      <div className={css.body}>
        {!hasChips && <StatusChips query={query} filter={filter} />}
        {!isWide && (
          <div className={css.pair}>
            <Choices query={query} filter={filter} />
            {hasOwners && <UserFilter users={users} />}
          </div>
        )}
        {!hasChips && <Order query={query} filter={filter} />}
        <Fields query={query} filter={filter} rows={rows} onClose={onClose} />
      </div>
    </Dialog>
  )
}

/** Without columns there are no heads to press. */
function Order({ query, filter: { sort, order } }: Pick<Props, 'query' | 'filter'>) {
  const value = sort === undefined ? '' : `${sort} ${order}`
  return (
    <Field label="Order">
      {(id) => (
        <select
          id={id}
          value={value}
          onChange={({ target }) => {
            const [by, to] = target.value.split(' ')
            query.set({ sort: by, order: to === 'asc' ? 'asc' : undefined })
          }}
        >
          <option value="">Newest first</option>
          <option value="started asc">Oldest first</option>
          {columns
            .filter((each) => each.sort !== undefined && each.sort !== 'started')
            .flatMap(({ name, sort: by }) => [
              <option key={`${by} desc`} value={`${by} desc`}>{`${name}, most first`}</option>,
              <option key={`${by} asc`} value={`${by} asc`}>{`${name}, least first`}</option>,
            ])}
        </select>
      )}
    </Field>
  )
}

function Fields({ query, filter, rows, onClose }: Pick<Props, 'query' | 'filter' | 'rows' | 'onClose'>) {
  const agents = useAgents().value?.agents ?? []
  const [model, setModel] = useState(filter.model ?? '')
  const [client, setClient] = useState(filter.client ?? '')
  const [cost, setCost] = useState(filter.cost)
  const [took, setTook] = useState(() => inSeconds(filter.took))
  const [given] = useState(() => sinceTime(filter.since, Date.now()))
  const [since, setSince] = useState(given)
  const [until, setUntil] = useState(() => sinceTime(filter.until, Date.now()))
  const isOther = since !== given
  const models = [
    ...rows.flatMap((row) => row.models ?? []),
    ...agents.flatMap(({ steps }) => steps.flatMap((step) => step.model ?? [])),
  ]
  const isWrong = since !== undefined && until !== undefined && since >= until
  return (
    <form
      className={css.form}
      onSubmit={(event) => {
        event.preventDefault()
        if (isWrong) return
        const seconds = (value: Range['min']) => (value === undefined ? undefined : Math.round(Number(value) * 1000))
        query.set({
          model: model.trim(),
          client: client.trim(),
          cost: writeRange(cost, 'usd'),
          took: writeRange({ min: seconds(took.min), max: seconds(took.max) }, 'time'),
          // `24h` stays what it is unless another time is chosen.
          ...(isOther && { since: since === undefined ? undefined : String(since) }),
          until: until === undefined ? undefined : String(until),
          sel: undefined,
        })
        onClose()
      }}
    >
      <Field label="Model">{(id) => <Listed id={id} value={model} onChange={setModel} values={models} />}</Field>
      <Field label="Client">
        {(id) => (
          <Listed
            id={id}
            value={client}
            onChange={setClient}
            values={[...clients, ...rows.map(({ protocol }) => protocol)]}
          />
        )}
      </Field>
      <Bounds label="Cost, in USD" step="any" range={cost} onChange={setCost} />
      <Bounds label="Took, in seconds" step="any" range={took} onChange={setTook} />
      <fieldset className={css.pair}>
        <TimeField label="Started from" value={since} onChange={setSince} />
        <TimeField label="Started before" value={until} onChange={setUntil} />
      </fieldset>
      {isWrong && <p role="alert">The first time must be before the second.</p>}
      <div className={css.answer}>
        <Button
          look="quiet"
          onClick={() => {
            query.set(Object.fromEntries([...filterNames, 'sel'].map((name) => [name, undefined])))
            onClose()
          }}
        >
          Show all runs
        </Button>
        <Button look="primary" type="submit" disabled={isWrong}>
          Show runs
        </Button>
      </div>
    </form>
  )
}

function inSeconds({ min, max }: Range): Range {
  const of = (value: Range['min']) => (typeof value === 'number' ? value / 1000 : value)
  return { min: of(min), max: of(max) }
}

function Field({ label, children }: { label: string; children(id: string): ReactNode }) {
  const id = useId()
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
    </div>
  )
}

interface ListedProps {
  id: string
  value: string
  values: readonly string[]
  onChange(value: string): void
}

function Listed({ id, value, values, onChange }: ListedProps) {
  const list = `${id}-list`
  return (
    <>
      <input
        id={id}
        list={list}
        value={value}
        placeholder="Any"
        autoComplete="off"
        spellCheck={false}
        maxLength={256}
        onChange={({ target }) => onChange(target.value)}
      />
      <datalist id={list}>
        {[...new Set(values)].toSorted().map((each) => (
          <option key={each}>{each}</option>
        ))}
      </datalist>
    </>
  )
}

function Bounds({
  label,
  step,
  range,
  onChange,
}: {
  label: string
  step: string
  range: Range
  onChange(range: Range): void
}) {
  const field = (end: 'min' | 'max', name: string) => (
    <input
      type="number"
      min={0}
      step={step}
      value={range[end] ?? ''}
      placeholder={end === 'min' ? 'from' : 'to'}
      aria-label={`${label}: ${name}`}
      onChange={({ target }) => onChange({ ...range, [end]: target.value === '' ? undefined : target.value })}
    />
  )
  return (
    <fieldset className={css.field}>
      <legend>{label}</legend>
      <div className={css.pair}>
        {field('min', 'at least')}
        {field('max', 'at most')}
      </div>
    </fieldset>
  )
}
