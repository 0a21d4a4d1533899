/** Where the reader is, what goes on, and what leads everywhere else. */
import { Link, useLocation } from 'wouter'
import { Button } from '../kit/Button.tsx'
import { ConnectionState } from './ConnectionState.tsx'
import { keyLabel } from './keys.ts'
import { show } from './overlay.ts'
import { Person } from './Person.tsx'
import { placesOf } from './places.ts'
import { setTheme, themeAfter, useTheme } from './theme.ts'
import { useRoomTitle } from './title.ts'
import { useRunCounts } from './use-run-counts.ts'
import css from './Header.module.css'

const themeIcons = { system: 'screen', light: 'sun', dark: 'moon' } as const

export function Header() {
  // Told of each step; the address itself has names as they were encoded.
  useLocation()
  const title = useRoomTitle()
  const theme = useTheme()
  const places = placesOf(location.pathname)
  return (
    <header className={css.header}>
      <nav className={css.places} aria-label="Place">
        <ol>
          {places.map(({ label, href }, i) => (
            <li key={i}>
              {href === undefined ? (
                <span aria-current="page" title={label}>
                  {i === places.length - 1 ? (title ?? label) : label}
                </span>
              ) : (
                <Link href={href}>{label}</Link>
              )}
            </li>
          ))}
        </ol>
      </nav>
      <Counts />
      <ConnectionState />
      <Button className={css.find} icon="search" title="Find" onClick={() => show('palette')}>
        <span className={css.wide}>Find</span>
        <kbd className={css.wide}>{keyLabel('Mod+k')}</kbd>
      </Button>
      <Button look="quiet" className={css.keys} aria-label="Keys (?)" title="Keys (?)" onClick={() => show('keys')}>
        <kbd aria-hidden="true">?</kbd>
      </Button>
      <Button
        look="quiet"
        icon={themeIcons[theme]}
        aria-label={`Theme: ${theme}. Change to ${themeAfter(theme)}`}
        onClick={() => setTheme(themeAfter(theme))}
      />
      <Person />
    </header>
  )
}

function Counts() {
  const counts = useRunCounts()
  if (counts === undefined || (counts.running === 0 && counts.waiting === 0)) return null
  const { running, waiting, isCut } = counts
  const more = isCut ? '+' : ''
  return (
    <p className={css.counts}>
      {running > 0 && (
        <Link href="/runs?status=running" data-status="running">
          <span aria-hidden="true">◐</span> {running}
          {more} <span className={css.word}>running</span>
        </Link>
      )}
      {waiting > 0 && (
        <Link href="/runs?status=waiting" data-status="suspended">
          <span aria-hidden="true">‖</span> {waiting}
          {more} <span className={css.word}>waiting</span>
        </Link>
      )}
    </p>
  )
}
