/**
 * Finds rooms, agents, runs, threads and things to do. Its field is there with the first key: the list, which comes behind it, is loaded when it is
 * first needed. The field keeps the focus; the arrows move through what was found.
 */
import { lazy, Suspense, useCallback, useEffect, useId, useRef, useState, type KeyboardEvent } from 'react'
import { Dialog } from '../kit/Dialog.tsx'
import { Skeleton } from '../kit/Skeleton.tsx'
import type { PaletteListHandle } from './PaletteList.tsx'
import { RoomBoundary } from './RoomBoundary.tsx'
import css from './Palette.module.css'

const PaletteList = lazy(() => import('./PaletteList.tsx'))

export function Palette({ isOpen, onClose }: { isOpen: boolean; onClose(): void }) {
  return (
    <Dialog isOpen={isOpen} title="Find" isBare className={css.palette!} onClose={onClose}>
      <PaletteBody onClose={onClose} />
    </Dialog>
  )
}

function PaletteBody({ onClose }: { onClose(): void }) {
  const id = useId()
  const [query, setQuery] = useState('')
  /** The element of the chosen row. `undefined`: the list is not here. */
  const [chosen, setChosen] = useState<string | null>()
  const list = useRef<PaletteListHandle>(null)
  const [isWhole, setWhole] = useState(false)
  const onWhole = useCallback(() => setWhole(true), [])
  /** Enter came before all that may be found. */
  const [early, setEarly] = useState<{ isShift: boolean }>()
  const press = (event: KeyboardEvent) => {
    const { key, shiftKey, nativeEvent } = event
    if (nativeEvent.isComposing) return
    if (key === 'Enter' && !isWhole) setEarly({ isShift: shiftKey })
    else if (list.current?.press(key, shiftKey) === true) event.preventDefault()
  }
  useEffect(() => {
    if (isWhole && early !== undefined) list.current?.press('Enter', early.isShift)
  }, [isWhole, early])
  return (
    <>
      <input
        className={css.field}
        role="combobox"
        aria-label="Find"
        aria-expanded={chosen !== undefined}
        aria-controls={chosen === undefined ? undefined : `${id}-list`}
        aria-activedescendant={chosen ?? undefined}
        placeholder="Search or jump to…"
        autoComplete="off"
        spellCheck={false}
        value={query}
        onChange={(event) => {
          setEarly(undefined)
          setQuery(event.target.value)
        }}
        onKeyDown={press}
      />
      <RoomBoundary place="palette">
        <Suspense fallback={<Skeleton rows={6} />}>
          <PaletteList
            handle={list}
            id={`${id}-list`}
            query={query}
            onChosen={setChosen}
            onWhole={onWhole}
            onClose={onClose}
          />
        </Suspense>
      </RoomBoundary>
    </>
  )
}
