/** A button that opens a few more things to do, or to choose. The arrows move in it; a click beside it, Esc and a button inside close it. */
import { useId, useRef, type KeyboardEvent, type MouseEvent, type ReactNode } from 'react'
import { Button } from './Button.tsx'
import type { IconName } from './Icon.tsx'
import css from './Menu.module.css'

interface Props {
  label: string
  icon?: IconName
  look?: 'quiet'
  /** What it holds are boxes to tick: it stays open. */
  isSticky?: boolean
  className?: string | undefined
  children: ReactNode
}

export function Menu({ label, icon = 'more', look, isSticky = false, className, children }: Props) {
  const id = useId()
  const box = useRef<HTMLDivElement>(null)
  // The name of an anchor is an identifier of CSS.
  const anchor = `--${id.replaceAll(/[^\w-]/gu, '')}`
  const leave = ({ target }: MouseEvent) => {
    if (!isSticky && target instanceof Element && target.closest('button') !== null) box.current?.hidePopover()
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined || box.current?.matches(':popover-open') !== true) return
    // Fields of a menu have arrows of their own.
    if ((event.target as Element).matches('input, select, textarea')) return
    const items = [...box.current.querySelectorAll<HTMLElement>('button:enabled, a[href]')]
    const at = items.indexOf(document.activeElement as HTMLElement)
    event.preventDefault()
    items[(Math.max(at, step === 1 ? -1 : 0) + step + items.length) % items.length]?.focus()
  }
  return (
    <>
      <Button
        onKeyDown={press}
        icon={icon}
        {...(look && { look })}
        aria-label={label}
        popoverTarget={id}
        className={className}
        style={{ anchorName: anchor } as React.CSSProperties}
      />
      {/* Its buttons are what is pressed. */}
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions */}
      <div
        id={id}
        ref={box}
        popover="auto"
        className={css.menu}
        style={{ positionAnchor: anchor } as React.CSSProperties}
        onClick={leave}
        onKeyDown={press}
      >
        {children}
      </div>
    </>
  )
}
