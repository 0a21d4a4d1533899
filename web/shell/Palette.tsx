/** Finds rooms, agents, runs, threads and things to do. The field keeps the focus; the arrows move through what was found. */
import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react'
import { useLocation } from 'wouter'
import { Dialog } from '../kit/Dialog.tsx'
import { matchItems, type PaletteItem } from './palette-items.ts'
import { usePaletteItems } from './use-palette-items.ts'
import css from './Palette.module.css'

export default function Palette({ isOpen, onClose }: { isOpen: boolean; onClose(): void }) {
  return (
    <Dialog isOpen={isOpen} title="Find and do" isBare className={css.palette} onClose={onClose}>
      <PaletteBody onClose={onClose} />
    </Dialog>
  )
}

function PaletteBody({ onClose }: { onClose(): void }) {
  const id = useId()
  const [, navigate] = useLocation()
  const [query, setQuery] = useState('')
  const [wanted, setAt] = useState(0)
  const list = useRef<HTMLDivElement>(null)
  const found = matchItems(usePaletteItems(query), query)
  const at = Math.min(wanted, Math.max(0, found.length - 1))
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [at, query])

  const choose = ({ href, run }: PaletteItem) => {
    // Closed first: what follows decides where the focus goes.
    onClose()
    if (href !== undefined) navigate(href)
    else if (run !== undefined) setTimeout(run)
  }
  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined && found.length > 0) setAt((at + step + found.length) % found.length)
    else if (event.key === 'Enter' && found[at] !== undefined) choose(found[at])
    else return
    event.preventDefault()
  }
  return (
    <>
      <input
        ref={(field) => field?.focus()}
        className={css.field}
        role="combobox"
        aria-label="Find and do"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={found.length > 0 ? `${id}-${at}` : undefined}
        placeholder="A room, an agent, a run, a thing to do"
        autoComplete="off"
        spellCheck={false}
        value={query}
        onChange={(event) => {
          setQuery(event.target.value)
          setAt(0)
        }}
        onKeyDown={press}
      />
      <div ref={list} id={`${id}-list`} className={css.list} role="listbox" aria-label="Found">
        {found.map((item, i) => (
          <PaletteRow
            key={item.id}
            id={`${id}-${i}`}
            item={item}
            isFirst={item.group !== found[i - 1]?.group}
            isHere={i === at}
            onPoint={() => setAt(i)}
            onChoose={() => choose(item)}
          />
        ))}
      </div>
      {found.length === 0 && <p className={css.nothing}>Nothing has these words. A run's id may be pasted here.</p>}
    </>
  )
}

interface RowProps {
  id: string
  item: PaletteItem
  /** Of its group. */
  isFirst: boolean
  isHere: boolean
  onPoint(): void
  onChoose(): void
}

function PaletteRow({ id, item: { group, label, hint }, isFirst, isHere, onPoint, onChoose }: RowProps) {
  return (
    <div
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={isHere}
      className={css.row}
      onPointerMove={() => isHere || onPoint()}
      onClick={onChoose}
      // The field has the focus: its keys choose.
      onKeyDown={undefined}
    >
      <span className={css.group}>{isFirst ? group : ''}</span>
      <span className={css.label}>{label}</span>
      {hint !== undefined && <span className={css.hint}>{hint}</span>}
    </div>
  )
}
