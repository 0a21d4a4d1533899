/** The room of tests: a bad answer becomes a test, which is run, fails, and is judged. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { expectAccessibleAt } from './axe.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openTabs } from './web.ts'

const { browser, fault } = await launchBrowser()
const scripted = new URL('../../src/models/scripted.ts', import.meta.url).href
/** A model that says what its system prompt says; `slow` says nothing until it is stopped. */
const config = (edit: boolean) => `
import { createScriptedModel, finish, latch, text } from '${scripted}'
const systemOf = ({ options }) => options.prompt.find(({ role }) => role === 'system').content
const model = (name) =>
  createScriptedModel((call) => [...(name === 'slow' ? [latch()] : []), text(systemOf(call)), finish()])
export default { server: { graceMs: 0, edit: ${edit} }, models: { providers: { echo: model } } }
`
const agent = (says: string, model = 'echo:plain') => `workflow:
  - id: answer
    type: llm
    config: { model: "${model}", stream: true, system: "${says}", messages: $input.messages }
`

async function open(path: string, edit = true, allows = /^$/u) {
  const root = folder({})
  const dir = join(root, 'agents')
  mkdirSync(dir)
  const says = (words: string, name = 'shop') => writeFileSync(join(dir, `${name}.yaml`), agent(words))
  writeFileSync(join(dir, 'millrace.config.js'), config(edit))
  says('We open at nine in the morning.')
  says('Good day.', 'front')
  const server = await serve({ dir, data: join(root, 'data'), env: {}, port: 0 })
  /** Runs an agent whose model says nothing, and stops it. */
  async function startSlow(): Promise<string> {
    writeFileSync(join(dir, 'slow.yaml'), agent('Slow', 'echo:slow'))
    const post = (path: string, body: object) =>
      fetch(server.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const input = { messages: [{ role: 'user', content: 'Hi' }] }
    await expect.poll(async () => (await fetch(`${server.url}/api/agents/slow`)).status).toBe(200)
    const { id } = (await (await post('/api/runs', { agentId: 'slow', input })).json()) as { id: string }
    await post(`/api/runs/${id}/stop`, {})
    const status = async () =>
      ((await (await fetch(`${server.url}/api/runs/${id}`)).json()) as { status: string }).status
    await expect.poll(status).toBe('aborted')
    return id
  }
  return { root, says, startSlow, ...(await openTabs(browser, server, { path, allows })) }
}

const look = (page: Page, name: string) =>
  atEachScreen(page, name, async (screen) => {
    expect(await flaws(page), `${name} ${screen.name}`).toEqual([])
    await expectAccessibleAt(page, screen)
  })

describe.skipIf(browser === undefined)(`tests in the page${fault}`, () => {
  test('an answer becomes a test; with another prompt it fails with what differs, and its history shows both', async () => {
    const { page, says, root, openTab } = await open('/tests', true, /400|409/u)
    await page.getByText('There are no tests yet.').waitFor()
    await look(page, 'no-tests')

    await page.goto(`${new URL(page.url()).origin}/chat/shop`)
    await page.getByRole('textbox', { name: /message/iu }).fill('When do you open?')
    await page.keyboard.press('Enter')
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.getByRole('button', { name: 'Add as test' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add as test' })
    await expect.poll(() => dialog.getByLabel('Name').inputValue()).toBe('When do you open?')
    expect(await dialog.getByLabel('Text').inputValue()).toBe('We open at nine in the morning.')
    await look(page, 'add-test')
    await dialog.getByLabel('Name').fill('opening hours')
    await page.keyboard.press('Enter')
    await dialog.getByRole('link', { name: 'Open the test' }).click()
    const last = page.getByTestId('last-result')
    await expect.poll(() => last.getAttribute('data-state')).toBe('passed')
    await page.getByText('The answer is exactly').waitFor()
    expect(readFileSync(join(root, 'tests/shop.yaml'), 'utf8')).toContain('equals: We open at nine in the morning.')

    // The same from the room of its run: another check of the same answer.
    await page.getByRole('link', { name: 'Open the recorded run' }).click()
    await page.getByTestId('run-room').waitFor()
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.getByRole('button', { name: 'Add as test' }).waitFor()
    await look(page, 'run-to-test')
    // On a phone it is in the menu, with which its dialog does not close.
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('button', { name: 'More', exact: true }).click()
    await page.getByRole('button', { name: 'Add as test' }).click()
    await dialog.getByLabel('Name').fill('says a time')
    await page.setViewportSize({ width: 1440, height: 900 })
    await dialog.getByLabel('The answer').selectOption('Contains this')
    await dialog.getByLabel('Text').fill('morning')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await dialog.getByRole('link', { name: 'Open the test' }).click()
    await page.getByRole('navigation', { name: 'Rooms' }).getByRole('link', { name: 'Tests' }).click()
    const row = (name: string) => page.getByTestId('test-row').filter({ hasText: name })
    await expect.poll(() => row('says a time').getAttribute('data-state')).toBe('passed')

    says('We open at ten in the morning.')
    const progress = page.getByTestId('tests-progress')
    await page.getByRole('button', { name: 'Run all' }).click()
    await progress.getByText('2 passed').waitFor()
    // The recording answers, and the list says what is not as it was.
    await row('opening hours').getByText('the prompt has changed').waitFor()

    await page.getByLabel('Answers').selectOption('Ask the models, run the tools, record')
    await page.getByRole('button', { name: 'Run all' }).click()
    await progress.getByText('1 passed, 1 failed').waitFor()
    await expect.poll(() => row('opening hours').getAttribute('data-state')).toBe('failed')
    await row('opening hours').getByText('does not equal').waitFor()
    await look(page, 'tests')
    await page.getByRole('button', { name: 'Failed 1' }).click()
    expect(await page.getByTestId('test-row').count()).toBe(1)

    await row('opening hours').getByRole('link').click()
    const failure = page.getByTestId('failure').first()
    await expect.poll(() => failure.locator('del').allTextContents()).toEqual(['nine'])
    expect(await failure.locator('ins').allTextContents()).toEqual(['ten'])
    const states = () =>
      page
        .getByTestId('result')
        .locator('[data-state]')
        .evaluateAll((all) => all.map((each) => (each as HTMLElement).dataset['state']))
    expect(await states()).toEqual(['failed', 'passed', 'passed'])
    await look(page, 'failed-test')

    // What asked the model is a run of its own.
    const run = page.getByRole('link', { name: 'Open run' }).first()
    const tab = await openTab((await run.getAttribute('href'))!)
    await tab.getByText('We open at ten in the morning.').first().waitFor()
    await tab.close()

    // It waits, with what it changes; accepted, it is undone once, and accepted again.
    const accepting = page.getByRole('dialog', { name: 'Accept the new answer?' })
    await page.getByRole('button', { name: 'See what changes' }).click()
    await expect.poll(() => accepting.locator('del').allTextContents()).toEqual(['nine'])
    expect(await accepting.locator('ins').allTextContents()).toEqual(['ten'])
    await look(page, 'new-answer')
    await accepting.getByRole('button', { name: 'Accept' }).click()
    await expect.poll(states).toEqual(['passed', 'failed', 'passed', 'passed'])
    const cases = () => readFileSync(join(root, 'tests/shop.yaml'), 'utf8')
    expect(cases()).toContain('equals: "We open at ten in the morning."')
    await look(page, 'accepted')
    await page.getByRole('button', { name: 'Undo' }).click()
    await expect.poll(cases).toContain('equals: We open at nine in the morning.')
    await expect.poll(states).toEqual(['passed', 'passed', 'failed', 'passed', 'passed'])
    expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0)
    // Somebody else changes the case while this page shows it: nothing is lost, and it says so.
    writeFileSync(join(root, 'tests/shop.yaml'), cases().replace('message: When do', 'message: Say, when do'))
    await page.getByRole('button', { name: 'See what changes' }).click()
    await accepting.getByRole('button', { name: 'Accept' }).click()
    await accepting.getByText('The test has changed meanwhile').waitFor()
    await accepting.getByRole('button', { name: 'Accept' }).click()
    await expect.poll(cases).toContain('equals: "We open at ten in the morning."')
    expect(cases()).toContain('message: Say, when do')
    await expect.poll(async () => (await states()).length).toBe(6)
    await page.getByTestId('result').nth(3).getByRole('button', { name: 'What differed' }).click()
    await page.getByTestId('result').nth(3).locator('del').waitFor()

    await page.getByRole('button', { name: 'Rename' }).click()
    const naming = page.getByRole('dialog', { name: 'Rename this test' })
    await naming.getByLabel('Name').fill('says a time')
    await page.keyboard.press('Enter')
    await naming.getByText('There is a case "says a time" already').waitFor()
    await look(page, 'rename-test')
    await naming.getByLabel('Name').fill('opening time')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'opening time' }).waitFor()
    await expect.poll(async () => (await states()).length).toBe(6)
    expect(new URL(page.url()).pathname).toBe('/tests/shop%2Fopening-time')

    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await expect.poll(() => new URL(page.url()).pathname).toBe('/tests')
    await row('opening time').waitFor({ state: 'detached' })
    await row('says a time').waitFor()
  })

  test('a run of tests goes on in another tab and is stopped there; who may not edit only reads', async () => {
    const { page, openTab, root, startSlow } = await open('/tests', true, /400/u)
    mkdirSync(join(root, 'tests'))
    const cases = ['a', 'b', 'c'].map((name) => `  - { name: ${name}, message: Hi }`).join('\n')
    writeFileSync(join(root, 'tests/front.yaml'), `agent: front\ncases:\n${cases}\n`)
    await page.reload()
    await page.getByText('no recording').first().waitFor()
    await page.getByLabel('Answers').selectOption('Ask the models, run the tools, record')
    await page.getByLabel('Model', { exact: true }).selectOption('Other model…')
    await page.getByLabel('Name of the model').fill('echo:slow')
    await page.getByLabel('Choose a').check()
    await page.getByLabel('Choose b').check()
    await page.getByRole('button', { name: 'Run 2 chosen' }).click()
    await page.getByText('0 of 2').waitFor()
    await page.close()

    const other = await openTab('/tests')
    await other.getByText('0 of 2').waitFor()
    await expect.poll(() => other.locator('[data-testid=test-row][data-state=running]').count()).toBe(2)
    await other.getByRole('button', { name: 'Stop' }).click()
    await other.getByText('0 passed, 2 not run').waitFor()
    // The rest, with the same model.
    await other.getByRole('button', { name: 'Run the other 2' }).click()
    await other.getByText('0 of 2').waitFor()
    await expect.poll(() => other.locator('[data-testid=test-row][data-state=running]').count()).toBe(2)
    await other.getByRole('button', { name: 'Stop' }).click()
    await other.getByText('0 passed, 2 not run').waitFor()
    await look(other, 'tests-stopped')
    await other.setViewportSize({ width: 1440, height: 900 })
    // A run that was stopped is no test, and says why.
    const slow = await startSlow()
    await other.goto(`${new URL(other.url()).origin}/runs/${slow}`)
    await other.getByRole('button', { name: 'Add as test' }).click()
    await other.getByText('This run cannot become a test').waitFor()
    await other.getByText(/was stopped\. A case needs a run that has ended by itself/u).waitFor()
    expect(await other.getByRole('button', { name: 'Try again' }).count()).toBe(0)
    await other.goto(`${new URL(other.url()).origin}/tests`)
    await other.getByLabel('Answers').waitFor()

    // By keyboard alone.
    await other.getByRole('button', { name: 'Run c' }).focus()
    await other.getByLabel('Answers').selectOption('Ask the models, run the tools, record')
    await other.getByRole('button', { name: 'Run c' }).press('Enter')
    await expect.poll(() => other.locator('[data-testid=test-row][data-state=passed]').count()).toBe(1)

    const closed = await open('/tests', false)
    await closed.page.getByText('set server.edit in the config').waitFor()
    expect(await closed.page.getByRole('button', { name: 'Choose a run' }).count()).toBe(0)
  })
})
