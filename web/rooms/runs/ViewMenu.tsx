/** How the list looks: views that were saved, and its columns. */
import { useId, useState } from 'react'
import { Link, useSearch } from 'wouter'
import { remember, useRemembered } from '../../data/remember.ts'
import type { Query } from '../../data/query.ts'
import { Button } from '../../kit/Button.tsx'
import { chosenColumns, columns, readColumns, writeColumns, type ColumnId } from './columns.ts'
import { readViews, viewOf, viewsName, withoutView, withView } from './views.ts'
import css from './ViewMenu.module.css'

export const columnsName = 'run-columns'

interface Props {
  query: Query
  /** Rows of two lines have no columns. */
  hasColumns: boolean
  hasOwners: boolean
}

export function ViewMenu({ query, hasColumns, hasOwners }: Props) {
  const menu = useId()
  const [isOpen, setOpen] = useState(false)
  const views = readViews(useRemembered(viewsName))
  const search = viewOf(useSearch())
  const current = views.find((view) => view.search === search)
  return (
    <>
      <Button
        icon="down"
        className={css.open}
        popoverTarget={menu}
        aria-label={`View: ${current?.name ?? 'not saved'}`}
      >
        <span className={css.name}>{current?.name ?? 'View'}</span>
      </Button>
      <div
        id={menu}
        popover="auto"
        className={css.menu}
        role="group"
        aria-label="View"
        onToggle={({ newState }) => setOpen(newState === 'open')}
      >
        {isOpen && (
          <>
            <section aria-label="Saved views">
              <h3>Saved views</h3>
              {views.length === 0 && (
                <p>A view keeps filters, order and columns. Its address is a link that others can open.</p>
              )}
              <ul>
                {views.map(({ name, search: to }) => (
                  <li key={name}>
                    <Link
                      href={`/runs?${to}`}
                      aria-current={to === search ? 'true' : undefined}
                      onClick={() => document.getElementById(menu)?.hidePopover()}
                    >
                      {name}
                    </Link>
                    <Button
                      look="quiet"
                      icon="close"
                      aria-label={`Delete the view ${name}`}
                      onClick={() => remember(viewsName, withoutView(views, name))}
                    />
                  </li>
                ))}
              </ul>
              <SaveView search={search} save={(name) => remember(viewsName, withView(views, name, search))} />
            </section>
            {hasColumns && <Columns query={query} hasOwners={hasOwners} />}
          </>
        )}
      </div>
    </>
  )
}

function SaveView({ search, save }: { search: string; save(name: string): void }) {
  const [name, setName] = useState('')
  return (
    <form
      className={css.save}
      onSubmit={(event) => {
        event.preventDefault()
        if (name.trim() === '') return
        save(name)
        setName('')
      }}
    >
      <input
        value={name}
        aria-label="Name of this view"
        placeholder={search === '' ? 'All runs' : 'Name of this view'}
        autoComplete="off"
        maxLength={60}
        onChange={(event) => setName(event.target.value)}
      />
      <Button type="submit" disabled={name.trim() === ''}>
        Save view
      </Button>
    </form>
  )
}

function Columns({ query, hasOwners }: Pick<Props, 'query' | 'hasOwners'>) {
  const kept = useRemembered(columnsName)
  const chosen = chosenColumns(readColumns(query.get('cols') ?? kept))
  const choose = (next: readonly ColumnId[] | undefined) => {
    const text = next && writeColumns(next)
    remember(columnsName, text)
    query.set({ cols: text }, { replace: true })
  }
  return (
    <section aria-label="Columns">
      <h3>Columns</h3>
      <div className={css.columns}>
        {columns
          .filter(({ id }) => id !== 'user' || hasOwners)
          .map(({ id, name }) => (
            <label key={id}>
              <input
                type="checkbox"
                checked={chosen.includes(id)}
                disabled={id === 'words'}
                onChange={() => choose(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id])}
              />
              {name}
            </label>
          ))}
      </div>
      <Button look="quiet" disabled={writeColumns(chosen) === undefined} onClick={() => choose(undefined)}>
        The usual columns
      </Button>
    </section>
  )
}
