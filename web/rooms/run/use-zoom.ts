/** The wheel over a timeline: zooms around the pointer, or moves sideways. */
import { useEffect, useRef, type RefObject } from 'react'
import { panView, zoomView } from './layout/scale.ts'
import type { Room } from './use-room.ts'

/** `needsKey`: without ⌘, Ctrl or Shift the wheel scrolls what is there. `area`: where the timeline stands inside of the element. */
export function useZoom(
  element: RefObject<HTMLElement | null>,
  room: Room,
  needsKey: boolean,
  area: () => DOMRect | undefined = () => element.current?.getBoundingClientRect(),
): void {
  const latest = useRef({ room, area })
  useEffect(() => {
    latest.current = { room, area }
  })
  useEffect(() => {
    const target = element.current
    const turn = (event: WheelEvent) => {
      const { view, setView } = latest.current.room
      const { left = 0, width = 1 } = latest.current.area() ?? {}
      const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY)
      if (isSideways || event.shiftKey) {
        event.preventDefault()
        setView(panView(view, (isSideways ? event.deltaX : event.deltaY) / Math.max(200, width)))
      } else if (!needsKey || event.ctrlKey || event.metaKey) {
        event.preventDefault()
        setView(zoomView(view, 1.0015 ** event.deltaY, Math.min(1, Math.max(0, (event.clientX - left) / width))))
      }
    }
    // React's own listener is passive: it could not keep the page from scrolling.
    target?.addEventListener('wheel', turn, { passive: false })
    return () => target?.removeEventListener('wheel', turn)
  }, [element, needsKey])
}
