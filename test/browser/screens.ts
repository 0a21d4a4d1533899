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

export const screens: readonly Screen[] = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 360, height: 740 },
].flatMap(({ width, height }) =>
  (['light', 'dark'] as const).map((theme) => ({ name: `${width}-${theme}`, width, height, theme })),
)

/** Each size, and both themes: what fits in one theme fits in the other. */
const tested = new Set(['1440-light', '1024-dark', '360-dark'])

/**
 * Shows the page at each size and in both themes, one after the other. With `MILLRACE_SCREENS=<folder>`, in each theme at each size, and
 * takes a picture of each.
 */
export async function atEachScreen(
  page: Page,
  name: string,
  look: (screen: Screen) => unknown = () => undefined,
): Promise<void> {
  const folder = process.env['MILLRACE_SCREENS']
  for (const screen of screens) {
    if (folder === undefined && !tested.has(screen.name)) continue
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
