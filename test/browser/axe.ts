/** What axe-core finds on a page. Its source is evaluated by the debugger: the page's policy allows no foreign script. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { AxeResults, RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const source = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** No serious or critical findings. `rules` turns some off: say why where you do. */
export async function expectAccessible(page: Page, rules: Record<string, { enabled: false }> = {}): Promise<void> {
  const run = `(async () => { if (!window.axe) { const define = undefined, module = undefined; ${source} }; return axe.run(document, ${JSON.stringify({ rules, resultTypes: ['violations'] } satisfies RunOptions)}) })()`
  const { violations } = await page.evaluate<AxeResults>(run)
  const grave = violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n  ${failureSummary}`))
  expect(grave).toEqual([])
}
