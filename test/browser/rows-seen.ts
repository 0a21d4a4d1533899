import type { Page } from 'playwright-core'

/** How many rows of a list are seen: whole, in the window, below no head and above no bar. */
export async function rowsSeen(page: Page, selector: string): Promise<number> {
  return page.evaluate((rows) => {
    const isSeen = (row: Element) => {
      const { left, width, top, bottom, height } = row.getBoundingClientRect()
      const has = (y: number) => row.contains(document.elementFromPoint(left + width / 2, y))
      return height > 0 && has(top + 2) && has(bottom - 3)
    }
    return [...document.querySelectorAll(rows)].filter(isSeen).length
  }, selector)
}
