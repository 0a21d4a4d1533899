/** What stands around every room: the rail to the rooms, and the header. */
import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import { Icon, type IconName } from '../kit/Icon.tsx'
import css from './Shell.module.css'

const rooms: readonly { path: string; label: string; icon: IconName; prefix: string }[] = [
  { path: '/', prefix: '/chat', label: 'Chat', icon: 'chat' },
  { path: '/runs', prefix: '/runs', label: 'Runs', icon: 'runs' },
  { path: '/threads', prefix: '/threads', label: 'Threads', icon: 'threads' },
  { path: '/agents', prefix: '/agents', label: 'Agents', icon: 'agents' },
  { path: '/overview', prefix: '/overview', label: 'Overview', icon: 'overview' },
]

export function Shell({ children }: { children: ReactNode }) {
  const [path] = useLocation()
  return (
    <div className={css.shell}>
      <nav className={css.rail} aria-label="Rooms">
        {rooms.map(({ path: to, prefix, label, icon }) => {
          const isHere = path === to || path.startsWith(prefix)
          return (
            <Link key={to} href={to} className={css.room} aria-current={isHere ? 'page' : undefined}>
              <Icon name={icon} />
              <span>{label}</span>
            </Link>
          )
        })}
      </nav>
      <main className={css.main}>{children}</main>
    </div>
  )
}
