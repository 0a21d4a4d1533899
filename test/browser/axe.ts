/** What axe-core finds on a page. Its source is evaluated by the debugger: the page's policy allows no foreign script. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { AxeResults, RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const source = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** No serious or critical findings. */
export async function expectAccessible(page: Page): Promise<void> {
  const run = `(async () => { if (!window.axe) { const define = undefined, module = undefined; ${source} }; return axe.run(document, ${JSON.stringify({ resultTypes: ['violations'] } satisfies RunOptions)}) })()`
  const { violations } = await page.evaluate<AxeResults>(run)
  const grave = violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n  ${failureSummary}`))
  expect(grave).toEqual([])
}

/**
 * In a row of screens: not at the sizes between a desk and a phone. They show what one of the two shows, and what axe finds does not
 * depend on where a thing is; what does, is for `flaws`.
 */
export async function expectAccessibleAt(page: Page, { name }: { name: string }): Promise<void> {
  if (!/^(?:1024|720)-/u.test(name)) await expectAccessible(page)
}
