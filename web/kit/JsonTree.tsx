/** JSON as a tree whose branches are drawn when they are opened. Long lists come in pieces, long texts are cut. */
import { useState } from 'react'
import { Button } from './Button.tsx'
import { Copy } from './Copy.tsx'
import { bytes } from './format.ts'
import { downloadText } from './download.ts'
import css from './JsonTree.module.css'

interface Props {
  value: unknown
  /** Its name, shown before it: `result`. */
  name?: string
  /** How many levels are open at first. Default 1. */
  depth?: number
}

/** With a button that copies all of it. */
export function JsonTree({ value, name, depth = 1 }: Props) {
  return (
    <div className={css.tree}>
      <div className={css.copy}>
        <Copy text={() => toText(value)} label={`Copy ${name ?? 'JSON'}`} />
      </div>
      <Value value={value} name={name} depth={depth} />
    </div>
  )
}

/** A text as it is, anything else as indented JSON. */
export function toText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, undefined, 2) ?? String(value))
}

function Value({ value, name, depth }: { value: unknown; name: string | undefined; depth: number }) {
  if (typeof value === 'object' && value !== null) return <Branch value={value} name={name} depth={depth} />
  return (
    <div className={css.row}>
      <Name name={name} />
      {typeof value === 'string' ? <Text text={value} isQuoted={name !== undefined} /> : <Atom value={value} />}
    </div>
  )
}

function Name({ name }: { name: string | undefined }) {
  return name === undefined ? null : <span className={css.name}>{name}: </span>
}

function Atom({ value }: { value: unknown }) {
  return <span className={css[value === null ? 'null' : typeof value]}>{String(value)}</span>
}

const page = 100

function Branch({ value, name, depth }: { value: object; name: string | undefined; depth: number }) {
  const [isOpen, setOpen] = useState(depth > 0)
  const [count, setCount] = useState(page)
  const isList = Array.isArray(value)
  const keys = isList ? undefined : Object.keys(value)
  const length = isList ? value.length : keys!.length
  const [before, after] = isList ? ['[', ']'] : ['{', '}']
  if (length === 0) {
    return (
      <div className={css.row}>
        <Name name={name} />
        {before + after}
      </div>
    )
  }
  const shown = isOpen ? Math.min(length, count) : 0
  return (
    <div>
      <button type="button" className={css.toggle} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span aria-hidden="true" className={css.twist} />
        <Name name={name} />
        {isOpen ? before : <span className={css.summary}>{summary(value, length)}</span>}
      </button>
      {isOpen && (
        <div className={css.children}>
          {Array.from({ length: shown }, (_, i) => {
            const key = isList ? String(i) : keys![i]!
            return <Value key={key} value={(value as Record<string, unknown>)[key]} name={key} depth={depth - 1} />
          })}
          {shown < length && (
            <Button look="quiet" onClick={() => setCount(count + page * 10)}>
              {`${length - shown} more`}
            </Button>
          )}
        </div>
      )}
      {isOpen && <div className={css.row}>{after}</div>}
    </div>
  )
}

/** `{a, b, c, … 9}` or `[12]`: what stands in a closed branch. */
function summary(value: object, length: number): string {
  if (Array.isArray(value)) return `[ ${length} ]`
  const keys = Object.keys(value).slice(0, 4)
  const names = keys.map((key) => (key.length > 24 ? `${key.slice(0, 24)}…` : key)).join(', ')
  return length > keys.length ? `{ ${names}, … ${length} }` : `{ ${names} }`
}

const longestShown = 2048
/** Longer ones are not put into the page at all. */
const longestOpened = 2 * 1024 ** 2

function Text({ text, isQuoted }: { text: string; isQuoted: boolean }) {
  const [isWhole, setWhole] = useState(false)
  const isCut = text.length > longestShown && !isWhole
  const shown = isCut ? `${text.slice(0, longestShown)}…` : text
  return (
    <>
      <span className={css.string}>{isQuoted ? JSON.stringify(shown) : shown}</span>
      {isCut && text.length <= longestOpened && (
        <Button look="quiet" onClick={() => setWhole(true)}>{`Show all (${bytes(text.length)})`}</Button>
      )}
      {isCut && text.length > longestOpened && (
        <Button
          look="quiet"
          onClick={() => downloadText('value.txt', text)}
        >{`Download (${bytes(text.length)})`}</Button>
      )}
    </>
  )
}
