/** What the palette has found, and which row of it is chosen. */
import { useEffect, useImperativeHandle, useRef, useState, type Ref } from 'react'
import { useLocation } from 'wouter'
import { matchItems, type PaletteItem } from './palette-items.ts'
import { searchItem, usePaletteItems } from './use-palette-items.ts'
import css from './Palette.module.css'

export interface PaletteListHandle {
  /** A key of the field. True: it was for the list. */
  press(key: string, isShift: boolean): boolean
}

interface Props {
  handle: Ref<PaletteListHandle>
  id: string
  query: string
  /** The id of the row that is chosen; null if nothing was found. */
  onChosen(id: string | null): void
  /** All that may be found is here. */
  onWhole(): void
  onClose(): void
}

export default function PaletteList({ handle, id, query, onChosen, onWhole, onClose }: Props) {
  const [, navigate] = useLocation()
  // Other words begin at the top again.
  const [wanted, setWanted] = useState({ query, at: 0 })
  const list = useRef<HTMLDivElement>(null)
  const search = searchItem(query)
  const { items, isWhole } = usePaletteItems(query)
  const found = [...matchItems(items, query), ...(search === undefined ? [] : [search])]
  const at = wanted.query === query ? Math.min(wanted.at, Math.max(0, found.length - 1)) : 0
  const setAt = (next: number) => setWanted({ query, at: next })
  const chosen = found.length > 0 ? `${id}-${at}` : null
  useEffect(() => onChosen(chosen), [onChosen, chosen])
  useEffect(() => {
    if (isWhole) onWhole()
  }, [onWhole, isWhole])
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [at, query])

  const choose = ({ href, other, run }: PaletteItem, isShift = false) => {
    // Closed first: what follows decides where the focus goes.
    onClose()
    if (href !== undefined) navigate((isShift ? other : undefined) ?? href)
    else if (run !== undefined) setTimeout(run)
  }
  useImperativeHandle(handle, () => ({
    press(key, isShift) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[key]
      if (step !== undefined && found.length > 0) setAt((at + step + found.length) % found.length)
      else if (key === 'Enter' && found[at] !== undefined) choose(found[at], isShift)
      else return false
      return true
    },
  }))
  return (
    <>
      <div ref={list} id={id} className={css.list} role="listbox" aria-label="Found">
        {found.map((item, i) => (
          <PaletteRow
            key={item.id}
            id={`${id}-${i}`}
            item={item}
            isFirst={item.group !== found[i - 1]?.group}
            isHere={i === at}
            onPoint={() => setAt(i)}
            onChoose={(isShift) => choose(item, isShift)}
          />
        ))}
      </div>
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
  onChoose(isShift: boolean): void
}

function PaletteRow({ id, item: { group, label, hint, keys }, isFirst, isHere, onPoint, onChoose }: RowProps) {
  return (
    <div
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={isHere}
      className={css.row}
      onPointerMove={() => isHere || onPoint()}
      onClick={({ shiftKey }) => onChoose(shiftKey)}
      // The field has the focus: its keys choose.
      onKeyDown={undefined}
    >
      <span className={css.group}>{isFirst ? group : ''}</span>
      <span className={css.label}>{label}</span>
      {hint !== undefined && <span className={css.hint}>{hint}</span>}
      {isHere && keys !== undefined && <span className={css.keys}>{keys}</span>}
    </div>
  )
}
