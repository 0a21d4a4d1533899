/**
 * The platform's dialog: it keeps the focus inside, closes with Esc and a click beside it, and gives the focus back. Who opens one with a field
 * can type at once.
 */
import { useEffect, useId, useRef, type ReactNode } from 'react'
import { Button } from './Button.tsx'
import css from './Dialog.module.css'

interface Props {
  isOpen: boolean
  title: string
  onClose(): void
  children: ReactNode
  /** The title is for those who hear the page; there is no head. */
  isBare?: boolean
  className?: string
}

export function Dialog({ isOpen, title, onClose, children, isBare = false, className = '' }: Props) {
  const id = useId()
  const box = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = box.current!
    if (isOpen && !dialog.open) {
      dialog.showModal()
      dialog.querySelector<HTMLElement>(fields)?.focus()
    }
    if (!isOpen && dialog.open) dialog.close()
  }, [isOpen])
  return (
    <dialog
      ref={box}
      className={`${css.dialog} ${className}`}
      aria-labelledby={id}
      onClose={onClose}
      {...{ closedby: 'any' }}
    >
      {isOpen && (
        <>
          <header className={isBare ? 'visually-hidden' : css.head}>
            <h2 id={id}>{title}</h2>
            {!isBare && <Button look="quiet" icon="close" aria-label="Close" onClick={onClose} />}
          </header>
          {children}
        </>
      )}
    </dialog>
  )
}

/** What is typed into, or the one thing to do. Of the others the platform chooses. */
const fields = '[data-autofocus], textarea, select, input:not([type=checkbox], [type=radio], [type=range])'
