import { useEffect, useRef, useState, type KeyboardEvent, type Ref } from 'react'
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
  /** The arrow down leads there: to the first row of what was found. */
  onDown?: () => void
  ref?: Ref<HTMLInputElement>
}

/** A field to search in a list. Enter searches at once; Esc empties it, and then leaves it. */
export function SearchField({ value, label, onChange, hasKey = true, onDown, ref }: Props) {
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
  const press = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.nativeEvent.isComposing) return
    if (event.key === 'ArrowDown' && onDown !== undefined) onDown()
    else if (event.key === 'Enter' && text.trim() !== said.current) {
      said.current = text.trim()
      onChange(said.current)
    } else if (event.key === 'Escape') {
      if (text === '') event.currentTarget.blur()
      else setText('')
    } else return
    event.preventDefault()
  }
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
        onKeyDown={press}
      />
      {hasKey && text === '' && (
        <kbd className={css.key} aria-hidden="true">
          /
        </kbd>
      )}
    </div>
  )
}
