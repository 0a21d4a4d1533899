/** Which time is shown: the last hour, day, week, or one's own. */
import { useId, useState } from 'react'
import type { Query } from '../../data/query.ts'
import { Button } from '../../kit/Button.tsx'
import { TimeField } from '../../kit/TimeField.tsx'
import { boundsOf, rangeQuery, sayRange, windows, type TimeRange } from './range.ts'
import css from './TimePicker.module.css'

export function TimePicker({ range, set }: { range: TimeRange; set: Query['set'] }) {
  const menu = useId()
  const [isOpen, setOpen] = useState(false)
  return (
    <fieldset className={css.windows} aria-label="Time">
      {windows.map((each) => (
        <Button
          key={each}
          aria-pressed={range.kind === 'window' && each === range.name}
          onClick={() => set({ window: each, since: undefined, until: undefined })}
        >
          {each}
        </Button>
      ))}
      <Button popoverTarget={menu} aria-pressed={range.kind === 'own'} className={css.own!}>
        {range.kind === 'own' ? sayRange(range).replace(/^from /u, '') : 'Custom time'}
      </Button>
      <div
        id={menu}
        popover="auto"
        className={css.menu}
        role="group"
        aria-label="Custom time"
        onToggle={({ newState }) => setOpen(newState === 'open')}
      >
        {isOpen && (
          <Own
            range={range}
            choose={(since, until) => {
              document.getElementById(menu)?.hidePopover()
              set(rangeQuery({ kind: 'own', since, until }))
            }}
          />
        )}
      </div>
    </fieldset>
  )
}

function Own({ range, choose }: { range: TimeRange; choose(since: number, until: number): void }) {
  const [given] = useState(() => boundsOf(range, Date.now()))
  const [since, setSince] = useState<number | undefined>(given.since)
  const [until, setUntil] = useState<number | undefined>(given.until)
  const isWrong = since === undefined || until === undefined || since >= until
  return (
    <form
      className={css.form}
      onSubmit={(event) => {
        event.preventDefault()
        if (!isWrong) choose(since, until)
      }}
    >
      <TimeField label="From" value={since} onChange={setSince} />
      <TimeField label="To" value={until} onChange={setUntil} />
      {isWrong && <p role="alert">The first time must be before the second.</p>}
      <Button look="primary" type="submit" disabled={isWrong}>
        Show this time
      </Button>
      <p>In a chart, drag over a time to show it.</p>
    </form>
  )
}
