/** Keeps the end of a scrolled text in view while it grows, unless the reader has scrolled up or selects words of it. */
import { useCallback, useEffect, useRef, useState, type RefObject } from 'react'

export interface Follow {
  /** The element that scrolls. */
  box: RefObject<HTMLDivElement | null>
  /** What is in it. */
  content: RefObject<HTMLDivElement | null>
  /** Something new is below. */
  hasNew: boolean
  toEnd(): void
}

/** px from the end that count as the end. */
const near = 40

export function useFollow(): Follow {
  const box = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const isFollowing = useRef(true)
  const [hasNew, setNew] = useState(false)

  const toEnd = useCallback(() => {
    isFollowing.current = true
    setNew(false)
    const element = box.current
    if (element !== null) element.scrollTop = element.scrollHeight
  }, [])

  useEffect(() => {
    const scrolled = box.current!
    let top = scrolled.scrollTop
    let height = 0
    const onScroll = () => {
      const isNear = scrolled.scrollHeight - scrolled.scrollTop - scrolled.clientHeight < near
      if (isNear) {
        isFollowing.current = true
        setNew(false)
      } else if (scrolled.scrollTop < top) isFollowing.current = false
      top = scrolled.scrollTop
    }
    const onResize = () => {
      if (isFollowing.current && isSelecting(scrolled)) isFollowing.current = false
      if (isFollowing.current) scrolled.scrollTop = scrolled.scrollHeight
      else if (scrolled.scrollHeight > height) setNew(true)
      height = scrolled.scrollHeight
    }
    // Before the next delta moves the text from under the reader's hand.
    const onWheel = (event: WheelEvent) => {
      if (event.deltaY < 0 && scrolled.scrollTop > 0) isFollowing.current = false
    }
    const sizes = new ResizeObserver(onResize)
    sizes.observe(content.current!)
    sizes.observe(scrolled)
    scrolled.addEventListener('scroll', onScroll, { passive: true })
    scrolled.addEventListener('wheel', onWheel, { passive: true })
    return () => {
      sizes.disconnect()
      scrolled.removeEventListener('scroll', onScroll)
      scrolled.removeEventListener('wheel', onWheel)
    }
  }, [])

  return { box, content, hasNew, toEnd }
}

function isSelecting(element: HTMLElement): boolean {
  const selection = document.getSelection()
  return selection !== null && !selection.isCollapsed && element.contains(selection.anchorNode)
}
