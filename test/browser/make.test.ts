/** Agents are made, copied, renamed and deleted in the page. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openTabs } from './web.ts'

const { browser, fault } = await launchBrowser()
const config = (edit: boolean) => `export default { server: { graceMs: 0, edit: ${edit} } }`

async function open(path: string, files: Record<string, string> = {}, { edit = true, allows = /^$/u } = {}) {
  const dir = folder({ ...files, 'millrace.config.js': config(edit) })
  const server = await serve({ dir, data: 'none', env: { MILLRACE_DEMO_DELAY_MS: '0' }, port: 0 })
  return { dir, ...(await openTabs(browser, server, { path, allows })) }
}

const say = `workflow:
  - id: say
    type: output-generator
    config: { template: Hello }
`
const calls = `workflow:
  - id: ask
    type: call-agent
    config: { agent: say }
`
const yamlIn = (dir: string) => readdirSync(dir).filter((name) => name.endsWith('.yaml'))

describe.skipIf(browser === undefined)(`agents made in the page${fault}`, () => {
  test('in an empty folder an agent is made from a template, edited, and answers', async () => {
    const { page, dir } = await open('/agents')
    await page.getByRole('button', { name: 'New agent' }).click()
    // The name is typed at once.
    await page.keyboard.type('Front desk')
    await page.getByText('Its file: front-desk.yaml').waitFor()
    await page.getByRole('radio', { name: /Tools/u }).check()
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).pathname).toBe('/agents/front-desk')
    expect(readFileSync(join(dir, 'front-desk.yaml'), 'utf8')).toContain('name: "Front desk"')
    await page.getByText('No mistakes.', { exact: true }).waitFor()

    await page.locator('.cm-line', { hasText: 'stream: true' }).click()
    await page.keyboard.press('End')
    await page.keyboard.type(' # first')
    await page.getByText('Unsaved changes').waitFor()
    await page.getByRole('button', { name: 'Show changes' }).click()
    await page.locator('.cm-deletedChunk').waitFor()
    await page.getByRole('button', { name: 'Discard' }).click()
    await page.getByText('Unsaved changes').waitFor({ state: 'detached' })
    expect(await page.locator('.cm-line', { hasText: '# first' }).count()).toBe(0)

    await page.getByRole('button', { name: 'Try' }).click()
    await page.getByRole('textbox', { name: /message/iu }).fill('What is 6*7?')
    await page.keyboard.press('Enter')
    await page.getByText('42').first().waitFor()
  })

  test('an agent is duplicated, renamed and deleted; one that is called is not', async () => {
    const { page, dir } = await open('/agents/say', { 'say.yaml': say, 'calls.yaml': calls }, { allows: /409/u })
    const choose = async (what: string) => {
      await page.getByRole('button', { name: 'More' }).click()
      await page.getByRole('button', { name: what, exact: true }).click()
    }
    const dialog = page.getByRole('dialog')
    await choose('Duplicate')
    await dialog.getByRole('button', { name: 'Duplicate' }).click()
    await expect.poll(() => new URL(page.url()).pathname).toBe('/agents/say-copy')
    expect(readFileSync(join(dir, 'say-copy.yaml'), 'utf8')).toBe(say)

    await choose('Rename')
    await dialog.getByRole('textbox').fill('greet')
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).pathname).toBe('/agents/greet')
    expect(yamlIn(dir).toSorted()).toEqual(['calls.yaml', 'greet.yaml', 'say.yaml'])

    await choose('Delete')
    await dialog.getByText('Its runs and conversations stay.').waitFor()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await expect.poll(() => new URL(page.url()).pathname).toBe('/agents')
    await page.getByTestId('agent-row').filter({ hasText: 'greet' }).waitFor({ state: 'detached' })
    expect(yamlIn(dir).toSorted()).toEqual(['calls.yaml', 'say.yaml'])

    await page.getByTestId('agent-row').getByRole('link', { name: 'say', exact: true }).click()
    await choose('Delete')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByText('calls calls this agent. Change it first.').waitFor()
    expect(existsSync(join(dir, 'say.yaml'))).toBe(true)
  })

  test('where nobody may edit there is nothing to make', async () => {
    const { page } = await open('/agents', { 'say.yaml': say }, { edit: false })
    await page.getByTestId('agent-row').first().waitFor()
    expect(await page.getByRole('button', { name: 'New agent' }).count()).toBe(0)
  })

  test('the dialog and the menu fit every size and both themes, and are accessible', async () => {
    const { page } = await open('/agents', { 'say.yaml': say })
    const look = (name: string) =>
      atEachScreen(page, name, async (screen) => {
        expect(await flaws(page), screen.name).toEqual([])
        await expectAccessibleAt(page, screen)
      })
    await page.getByRole('button', { name: 'New agent' }).click()
    await look('new-agent')
    await page.keyboard.press('Escape')
    await page.getByTestId('agent-row').getByRole('link', { name: 'say', exact: true }).click()
    await page.getByRole('button', { name: 'More' }).click()
    await look('agent-menu')
  })
})
