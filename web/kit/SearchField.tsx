import { useEffect, useRef, useState, type Ref } from 'react'
import { Icon } from './Icon.tsx'
import css from './SearchField.module.css'

interface Props {
  /** What is searched for now. */
  value: string
  label: string
  /** Called a moment after the last key. */
  onChange(value: string): void
  /** `/` leads to it. Default true. */
  hasKey?: boolean
  ref?: Ref<HTMLInputElement>
}

/** A field to search in a list. Esc empties it, and then leaves it. */
export function SearchField({ value, label, onChange, hasKey = true, ref }: Props) {
  const [text, setText] = useState(value)
  const said = useRef(value)
  const change = useRef(onChange)
  useEffect(() => {
    change.current = onChange
  })
  // A link or the back button has changed it.
  useEffect(() => {
    if (value === said.current) return
    said.current = value
    setText(value)
  }, [value])
  useEffect(() => {
    if (text.trim() === said.current) return
    const timer = setTimeout(() => {
      said.current = text.trim()
      change.current(said.current)
    }, 200)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <div className={css.field}>
      <Icon name="search" />
      <input
        ref={ref}
        type="search"
        value={text}
        placeholder={label}
        aria-label={label}
        aria-keyshortcuts={hasKey ? '/' : undefined}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          event.preventDefault()
          if (text === '') event.currentTarget.blur()
          else setText('')
        }}
      />
      {hasKey && text === '' && (
        <kbd className={css.key} aria-hidden="true">
          /
        </kbd>
      )}
    </div>
  )
}
