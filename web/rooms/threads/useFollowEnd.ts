import { useEffect, type RefObject } from 'react'

/** Keeps the end of a pane in sight while the reader is there: from the start until they scroll up. */
export function useFollowEnd(pane: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = pane.current!
    let isAtEnd = true
    let height = 0
    const scrolled = () => {
      // Growth is no scrolling of the reader.
      if (element.scrollHeight === height)
        isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40
    }
    const follow = () => {
      height = element.scrollHeight
      if (isAtEnd) element.scrollTop = height
    }
    const observer = new ResizeObserver(follow)
    observer.observe(element)
    for (const child of element.children) observer.observe(child)
    element.addEventListener('scroll', scrolled, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', scrolled)
    }
  }, [pane])
}
