/** What the eye would find wrong on a page: what sticks out, is cut, lies over something else, or jumps. */
import type { Page } from 'playwright-core'

/** Of what is shown now. Nothing may stick out of the window sideways, no word may be cut without `…` or a title, no control covered. */
export async function flaws(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth
    const height = document.documentElement.clientHeight
    // An open dialog or menu may lie over anything.
    const root = [...document.querySelectorAll<HTMLElement>('dialog:modal, :popover-open')].at(-1) ?? document.body
    const all = [...root.querySelectorAll<HTMLElement>('*')].filter(
      (each) =>
        each.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
        each.closest('.visually-hidden, .cm-editor') === null,
    )
    const found: string[] = []
    const note = (what: string, { outerHTML }: Element) => void found.push(`${what}: ${outerHTML.slice(0, 200)}`)
    const styleOf = (element: Element) => getComputedStyle(element)

    function* around(element: Element): Generator<Element> {
      for (let each = element.parentElement; each !== null && each !== document.body; each = each.parentElement) {
        yield each
        // Its box does not bound what is fixed in the window.
        if (styleOf(each).position === 'fixed') return
      }
    }

    /** It lies in a pane that is itself in the window. */
    const isScrolled = (element: Element): boolean => {
      for (const each of around(element)) {
        if (!/auto|scroll|hidden|clip/u.test(styleOf(each).overflowX)) continue
        const { left, right } = each.getBoundingClientRect()
        if (left >= -1 && right <= width + 1) return true
      }
      return false
    }
    for (const each of all) {
      const { left, right } = each.getBoundingClientRect()
      if (left === right) continue
      if ((right > width + 1 || left < -1) && !isScrolled(each)) note('sticks out', each)
    }

    const isTold = (element: Element) => element.closest('[title]:not([title=""])') !== null
    for (const each of all) {
      const texts = [...each.childNodes].filter((node) => node.nodeType === 3 && node.textContent!.trim() !== '')
      for (const text of texts) {
        const range = document.createRange()
        range.selectNodeContents(text)
        const { left, right } = range.getBoundingClientRect()
        for (const box of [each, ...around(each)]) {
          const { overflowX, textOverflow, scrollbarWidth, display, paddingLeft, paddingRight } = styleOf(box)
          if (overflowX === 'visible' || display === 'inline') continue
          const at = box.getBoundingClientRect()
          // Nothing of it is seen: it is there for those who listen.
          if (at.width - parseFloat(paddingLeft) - parseFloat(paddingRight) <= 1) break
          const isCut = right > at.right + 1 || left < at.left - 1
          // A pane that shows no bar does not tell that there is more.
          const isPane = /auto|scroll/u.test(overflowX) && scrollbarWidth !== 'none'
          if (isCut && !isPane && textOverflow !== 'ellipsis' && !isTold(each)) note('is cut', each)
          if (isCut || isPane) break
        }
      }
    }

    const isSeen = (element: Element) => element.matches('svg, img, .mark') || element.childElementCount === 0
    for (const each of all.filter((element) => element.matches('button:enabled'))) {
      if (each.innerText.trim() === '' && !all.some((part) => part !== each && each.contains(part) && isSeen(part))) {
        note('is empty', each)
      }
    }

    const controls = 'a[href], button, input, select, textarea, summary, [role=tab], [role=option]'
    for (const each of all.filter((element) => element.matches(controls))) {
      if (styleOf(each).pointerEvents === 'none' || each.closest('[inert]') !== null) continue
      // A link that is broken into two lines has its middle elsewhere.
      const box = each.getClientRects()[0]
      if (box === undefined || box.width < 2 || box.height < 2) continue
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2]
      if (x < 0 || y < 0 || x >= width || y >= height) continue
      const isOutside = [...around(each)].some((pane) => {
        const at = pane.getBoundingClientRect()
        return styleOf(pane).overflowY !== 'visible' && (x < at.left || x > at.right || y < at.top || y > at.bottom)
      })
      if (isOutside) continue
      const top = document.elementFromPoint(x, y)
      if (top === null || each.contains(top) || top.contains(each)) continue
      if (top.closest('label')?.contains(each)) continue
      // What is scrolled goes below what stays, and below the edge of its pane, which is a little wider than it looks.
      if (top.role === 'separator') continue
      if ([top, ...around(top)].some((over) => styleOf(over).position === 'sticky')) continue
      note(`is covered by ${top.outerHTML.slice(0, 80)}`, each)
    }
    return found
  })
}

/** Begins to note what jumps, in each document that the page loads from now on. */
export async function watchShifts(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const shifts: unknown[] = []
    Object.assign(globalThis, { millraceShifts: shifts })
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as (PerformanceEntry & Shift)[]) {
        if (entry.hadRecentInput) continue
        const moved = entry.sources.map(({ node }) => (node as Element | null)?.outerHTML?.slice(0, 200))
        shifts.push({ value: entry.value, moved })
      }
    }).observe({ type: 'layout-shift', buffered: true })
    interface Shift {
      value: number
      hadRecentInput: boolean
      sources: { node: Node | null }[]
    }
  })
}

/** What has moved by itself in the document that is shown: how far, and what. */
export async function shiftsOf(page: Page): Promise<{ value: number; moved: string[] }[]> {
  return page.evaluate('millraceShifts')
}
