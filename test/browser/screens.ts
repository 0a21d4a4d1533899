/** A page at the sizes and in the themes that every room must look right in. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

export interface Screen {
  /** `1440-light` */
  name: string
  width: number
  height: number
  theme: 'light' | 'dark'
}

const inBothThemes = (...sizes: [width: number, height: number][]): readonly Screen[] =>
  sizes.flatMap(([width, height]) =>
    (['light', 'dark'] as const).map((theme) => ({ name: `${width}-${theme}`, width, height, theme })),
  )

export const screens = inBothThemes([1440, 900], [1024, 768], [360, 740])

/** A desk, a small laptop, a phone, and the desk at a zoom of 200 %. */
export const roomScreens = inBothThemes([1440, 900], [1024, 768], [390, 844], [720, 450])

const folder = process.env['MILLRACE_SCREENS']
export const takesPictures = folder !== undefined

/** Each size, and both themes: what fits in one theme fits in the other. */
const tested = new Set(['1440-light', '1024-dark', '360-dark'])

/**
 * Shows the page at each size and in both themes, one after the other: of {@link screens} at each size in one of them. With
 * `MILLRACE_SCREENS=<folder>`, in each theme at each size, and takes a picture of each.
 */
export async function atEachScreen(
  page: Page,
  name: string,
  look: (screen: Screen) => unknown = () => undefined,
  of = screens,
): Promise<void> {
  for (const screen of of) {
    if (of === screens && !takesPictures && !tested.has(screen.name)) continue
    await page.setViewportSize({ width: screen.width, height: screen.height })
    await page.emulateMedia({ colorScheme: screen.theme, reducedMotion: 'reduce' })
    // Two frames: the layout and what follows it.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    if (folder !== undefined) {
      mkdirSync(folder, { recursive: true })
      await page.screenshot({ path: join(folder, `${name}-${screen.name}.png`) })
    }
    await look(screen)
  }
}
