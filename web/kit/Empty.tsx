import type { ReactNode } from 'react'
import { Link } from 'wouter'
import css from './states.module.css'

/** What a room says when it has nothing to show: a sentence, and what to do. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={css.empty}>
      <h2>{title}</h2>
      {children !== undefined && <div className={css.hint}>{children}</div>}
    </div>
  )
}

/** Where to go from here. */
export function LinkList({ links }: { links: readonly { href: string; label: string }[] }) {
  return (
    <ul className={css.links}>
      {links.map(({ href, label }) => (
        <li key={href}>
          <Link href={href}>{label}</Link>
        </li>
      ))}
    </ul>
  )
}
