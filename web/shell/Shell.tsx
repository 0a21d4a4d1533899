/** What stands around every room: the rail to the rooms, the header, and what may lie over them. */
import { useEffect, useRef, type ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import { useKeyState } from '../data/key.ts'
import { useMay } from '../data/server.ts'
import { Icon, type IconName } from '../kit/Icon.tsx'
import { useNotice } from '../kit/notice.ts'
import { copyLink } from './copy-link.ts'
import { OfflineBanner } from './ConnectionState.tsx'
import { Header } from './Header.tsx'
import { listenForKeys, useKeys } from './keys.ts'
import { KeysDialog } from './KeysDialog.tsx'
import { hide, show, showSignIn, useOverlay } from './overlay.ts'
import { Palette } from './Palette.tsx'
import { windowTitle } from './places.ts'
import { SignInDialog } from './SignInDialog.tsx'
import { useRoomTitle } from './title.ts'
import css from './Shell.module.css'

export const rooms: readonly { path: string; label: string; icon: IconName; prefix: RegExp; key: string }[] = [
  { path: '/', prefix: /^\/((chat|beside)(\/.*)?)?$/u, label: 'Chat', icon: 'chat', key: 'c' },
  { path: '/runs', prefix: /^\/(runs|compare)(\/|$)/u, label: 'Runs', icon: 'runs', key: 'r' },
  { path: '/threads', prefix: /^\/threads(\/|$)/u, label: 'Threads', icon: 'threads', key: 't' },
  { path: '/agents', prefix: /^\/agents(\/|$)/u, label: 'Agents', icon: 'agents', key: 'a' },
  { path: '/tests', prefix: /^\/tests(\/|$)/u, label: 'Tests', icon: 'tests', key: 'e' },
  { path: '/overview', prefix: /^\/overview(\/|$)/u, label: 'Overview', icon: 'overview', key: 'o' },
]

export function Shell({ children }: { children: ReactNode }) {
  const [path, navigate] = useLocation()
  const main = useRef<HTMLElement>(null)
  usePlace(path, main)
  const maySeeTests = useMay('tests.read') !== false
  const shown = rooms.filter((room) => room.path !== '/tests' || maySeeTests)
  useEffect(listenForKeys, [])
  useKeys(
    {
      'Mod+k': { label: 'Find', run: () => show('palette') },
      '/': { label: 'Find', run: () => show('palette') },
      '?': { label: 'Keys', run: () => show('keys') },
      y: { label: 'Copy the link to this', run: copyLink },
      ...Object.fromEntries(
        rooms.map(({ key, label, path: to }) => [`g ${key}`, { label: `Go to ${label}`, run: () => navigate(to) }]),
      ),
    },
    'Everywhere',
  )
  return (
    <div className={css.shell}>
      <a
        className={css.skip}
        href="#main"
        onClick={(event) => {
          event.preventDefault()
          main.current?.focus()
        }}
      >
        Skip to the content
      </a>
      <nav className={css.rail} aria-label="Rooms">
        {shown.map(({ path: to, prefix, label, icon }) => (
          <Link key={to} href={to} className={css.room} aria-current={prefix.test(path) ? 'page' : undefined}>
            <Icon name={icon} size={18} />
            <span>{label}</span>
          </Link>
        ))}
      </nav>
      <div className={css.page}>
        <Header />
        <OfflineBanner />
        <main ref={main} id="main" tabIndex={-1} className={css.main}>
          {children}
        </main>
      </div>
      <Overlays />
      <Notices />
    </div>
  )
}

/** The title of the window, and the focus: after a step to another place it is there, unless the room has put it somewhere. */
function usePlace(path: string, main: { current: HTMLElement | null }): void {
  const title = useRoomTitle()
  const last = useRef(path)
  useEffect(() => {
    document.title = windowTitle(location.pathname, title)
  }, [path, title])
  useEffect(() => {
    if (last.current === path) return
    last.current = path
    const { activeElement } = document
    if (main.current?.contains(activeElement) !== true && activeElement?.closest('dialog') == null) {
      main.current?.focus({ preventScroll: true })
    }
  }, [path, main])
}

function Overlays() {
  const overlay = useOverlay()
  const { isRefused } = useKeyState()
  // Asked for once: who closes the dialog finds it behind the button in the header.
  useEffect(() => {
    if (isRefused) showSignIn()
    // Or nobody has to: in another tab somebody has signed in.
    else hide('sign-in')
  }, [isRefused])
  return (
    <>
      <SignInDialog isOpen={overlay === 'sign-in'} onClose={() => hide('sign-in')} />
      <KeysDialog isOpen={overlay === 'keys'} onClose={() => hide('keys')} />
      <Palette isOpen={overlay === 'palette'} onClose={() => hide('palette')} />
    </>
  )
}

function Notices() {
  const text = useNotice()
  return (
    <output className={css.notices} aria-live="polite">
      {text !== undefined && <span>{text}</span>}
    </output>
  )
}
