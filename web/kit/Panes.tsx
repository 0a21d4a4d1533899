/**
 * Panes beside each other, with edges to drag: `<Panes name="run" label="Inspector" side={<Inspector/>}>main</Panes>`. The width of
 * the side pane is kept by `name`. On a phone the side pane is a sheet over the main one, with a button to close it.
 */
import { useId, useRef, useState, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react'
import { useNarrow } from '../data/media.ts'
import { remember, useRemembered } from '../data/remember.ts'
import { Button } from './Button.tsx'
import { clampSize, nextSize } from './pane-size.ts'
import css from './Panes.module.css'

interface Props {
  /** What its size is remembered by: one name for each place. */
  name: string
  /** What the side pane is called, for those who hear the page and as the title of the sheet. */
  label: string
  /** Absent: the main pane has all the room. */
  side: ReactNode | undefined
  children: ReactNode
  /** Which side it stands on; `bottom` has a height instead of a width. Default: `right`. */
  at?: 'left' | 'right' | 'bottom'
  /** px. Default 360. */
  size?: number
  /** px. Default 200. */
  min?: number
  /** Closes the side pane: shown on the sheet of a phone. Without it the pane stands below the main one there. */
  onClose?: () => void
}

export function Panes({ name, label, side, children, at = 'right', size = 360, min = 200, onClose }: Props) {
  const id = useId()
  const box = useRef<HTMLDivElement>(null)
  // What a sheet covers cannot be used, by Tab neither.
  const isSheet = useNarrow() && side !== undefined && onClose !== undefined
  const kept = Number(useRemembered(`pane-${name}`))
  const [dragged, setDragged] = useState<number>()
  const shown = dragged ?? (kept > 0 ? kept : size)
  const space = () => {
    const { width = 0, height = 0 } = box.current?.getBoundingClientRect() ?? {}
    return at === 'bottom' ? height : width
  }
  const keep = (next: number) => remember(`pane-${name}`, String(clampSize(next, min, space())))

  const drag = (event: PointerEvent<HTMLDivElement>) => {
    if (event.button !== 0) return
    event.preventDefault()
    const edge = event.currentTarget
    edge.focus()
    edge.setPointerCapture(event.pointerId)
    const at0 = at === 'bottom' ? event.clientY : event.clientX
    const from = clampSize(shown, min, space())
    const sizeAt = (move: globalThis.PointerEvent) => {
      const moved = (at === 'bottom' ? move.clientY : move.clientX) - at0
      return clampSize(from + (at === 'left' ? moved : -moved), min, space())
    }
    const move = (each: globalThis.PointerEvent) => setDragged(sizeAt(each))
    const end = (each: globalThis.PointerEvent) => {
      edge.removeEventListener('pointermove', move)
      edge.removeEventListener('lostpointercapture', end)
      keep(sizeAt(each))
      setDragged(undefined)
    }
    edge.addEventListener('pointermove', move)
    edge.addEventListener('lostpointercapture', end)
  }
  const press = (event: KeyboardEvent<HTMLDivElement>) => {
    const next = nextSize(event.key, at, clampSize(shown, min, space()), min, space())
    if (next === undefined) return
    event.preventDefault()
    keep(next)
  }

  return (
    <div
      ref={box}
      className={css.panes}
      data-at={at}
      data-side={side === undefined ? 'none' : onClose === undefined ? 'below' : 'sheet'}
      style={{ '--size': `${shown}px`, '--min': `${min}px` }}
    >
      <div className={css.main} inert={isSheet}>
        {children}
      </div>
      {side !== undefined && (
        <>
          <div
            role="separator"
            tabIndex={0}
            className={css.edge}
            aria-label={`Size of ${label}`}
            aria-orientation={at === 'bottom' ? 'horizontal' : 'vertical'}
            aria-controls={id}
            aria-valuenow={Math.round(shown)}
            aria-valuemin={min}
            aria-valuemax={10_000}
            data-dragged={dragged === undefined ? undefined : true}
            onPointerDown={drag}
            onKeyDown={press}
            onDoubleClick={() => remember(`pane-${name}`, undefined)}
          />
          <section id={id} className={css.side} aria-label={label}>
            {onClose && (
              <header className={css.sheetHead}>
                <h2>{label}</h2>
                <Button look="quiet" icon="close" aria-label={`Close ${label}`} onClick={onClose} />
              </header>
            )}
            {side}
          </section>
        </>
      )}
    </div>
  )
}
