/** The agents of a folder in the page: what is wrong with their files, an editor for them, their steps and their runs. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { latch } from '../../src/models/testing/scripted-model.ts'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { expectAccessibleAt } from './axe.ts'
import { answers } from './chat-page.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openTabs } from './web.ts'

const { browser, fault } = await launchBrowser()

const assistant = `metadata:
  name: Assistant
  description: Answers questions, with a calculator at hand
workflow:
  - id: prepare
    type: parallel
    config:
      branches:
        facts:
          - id: remember
            type: memory
            config: { action: recall }
        draft:
          - id: rounds
            type: loop
            config:
              while: $index < 2
              max: 2
              steps:
                - id: sketch
                  type: output-generator
                  config: { template: "$index" }
  - id: answer
    type: llm
    config:
      model: "demo:assistant"
      stream: true
      tools: [calculator]
      messages: $input.messages
after:
  - id: keep
    type: memory
    config: { action: store }
`
const broken = `workflow:
  - id: a
    type: llm
    config:
      model: "demo:assistant"
      tools: [calculater]
`

interface Opening {
  edit?: boolean
  allows?: RegExp
  files?: Record<string, string>
}

async function open(path: string, { edit = true, allows, files = {} }: Opening = {}) {
  const config = `export default { server: { graceMs: 0, edit: ${edit} } }`
  const dir = folder({ 'assistant.yaml': assistant, 'broken.yaml': broken, ...files, 'millrace.config.js': config })
  // The demo model says its first word and then nothing until the test is over.
  const env = { MILLRACE_DEMO_DELAY_MS: '600000' }
  const server = await serve({ dir, data: 'none', env, port: 0 })
  const tabs = await openTabs(browser, server, { path, ...(allows && { allows }) })
  return { dir, server, ...tabs }
}

const editor = (page: Page) => page.getByRole('textbox', { name: 'YAML of the agent' })
const fileOf = (dir: string) => readFileSync(join(dir, 'assistant.yaml'), 'utf8')

/** Writes at the end of the line that holds this. */
async function typeBehind(page: Page, line: string, words: string): Promise<void> {
  await page.locator('.cm-line', { hasText: line }).first().click()
  await page.keyboard.press('End')
  await page.keyboard.type(words)
}

describe.skipIf(browser === undefined)(`the agents${fault}`, () => {
  test('a file with mistakes is listed with them, opens at its line, and is mended with one click', async () => {
    const { page, dir } = await open('/agents')
    const row = page.getByTestId('broken-row').filter({ hasText: 'this agent cannot run' })
    // The name of the file stands once.
    expect((await row.innerText()).split('broken').length).toBe(2)
    // By keys: the found one has the focus.
    await page.getByTestId('agent-row').first().waitFor()
    await page.keyboard.type('/Ass')
    await row.waitFor({ state: 'detached' })
    await page.keyboard.press('ArrowDown')
    expect(await page.evaluate(() => document.activeElement!.textContent)).toBe('Assistant')
    await page.keyboard.type('/')
    await page.keyboard.press('Escape')
    await row.waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.type('jj')
    expect(await page.evaluate(() => document.activeElement!.textContent)).toBe('Assistant')
    await row.getByRole('link', { name: /^6:\d+$/u }).click()
    await expect.poll(() => page.url()).toMatch(/\/agents\/broken\?line=6$/u)
    const wrong = page.getByTestId('agent-fault')
    await wrong.filter({ hasText: /6:\d+.*calculater/u }).waitFor()
    await page.locator('.cm-lintRange-error').waitFor()
    await wrong.getByRole('button', { name: 'Change to “calculator”' }).click()
    await page.getByText('No mistakes. Not saved yet.').waitFor()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await expect
      .poll(() => readFileSync(join(dir, 'broken.yaml'), 'utf8'))
      .toBe(broken.replace('calculater', 'calculator'))
    await page.getByRole('link', { name: 'Agents' }).first().click()
    await page.getByTestId('agent-row').filter({ hasText: 'broken' }).waitFor()
    await page.getByRole('link', { name: 'broken.yaml' }).waitFor({ state: 'detached' })
  })

  test('what is typed is checked by the server, completed by the schema, kept over a reload and saved', async () => {
    const { page, dir } = await open('/agents/assistant')
    await editor(page).waitFor()
    await typeBehind(page, 'stream: true', '\nreas')
    await page.locator('.cm-tooltip-autocomplete li', { hasText: 'reasoning' }).first().waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.type('onin: 7')
    await page.getByTestId('agent-fault').filter({ hasText: '"reasonin"' }).waitFor()
    expect(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled()).toBe(true)
    for (let i = 0; i < 'reasonin: 7'.length; i++) await page.keyboard.press('Backspace')
    await page.keyboard.type('# a note')
    page.once('dialog', (dialog) => void dialog.accept())
    await page.reload()
    await page.locator('.cm-line', { hasText: '# a note' }).waitFor()
    await page.getByText('No mistakes. Not saved yet.').waitFor()
    await page.locator('.cm-line', { hasText: '# a note' }).click()
    await page.keyboard.press('Control+s')
    await expect.poll(() => fileOf(dir)).toBe(assistant.replace('stream: true\n', 'stream: true\n      # a note\n'))
    await page.getByText('No mistakes.', { exact: true }).waitFor()

    // What is typed while it is being saved stays, and is saved by the next time.
    const saving = latch()
    await page.route('**/api/agents/assistant', async (route) => {
      if (route.request().method() === 'POST') await saving.opened
      await route.continue()
    })
    await page.locator('.cm-line', { hasText: '# a note' }).click()
    await page.keyboard.press('End')
    await page.keyboard.type(', longer')
    await page.keyboard.press('Control+s')
    await page.getByRole('button', { name: 'Saving' }).waitFor()
    await page.keyboard.type(', and longer')
    saving.open()
    await expect.poll(() => fileOf(dir)).toContain('# a note, longer\n')
    await page.getByText('No mistakes. Not saved yet.').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    await page.keyboard.type('!')
    await page.locator('.cm-line', { hasText: '# a note, longer, and longer!' }).waitFor()
    await page.keyboard.press('Control+s')
    await expect.poll(() => fileOf(dir)).toContain('# a note, longer, and longer!\n')
  })

  test('models, tools and agents that exist complete what is typed', async () => {
    const begun = `workflow:
  - id: ask
    type: call-agent
    config:
      agent:
  - id: answer
    type: llm
    config:
      model:
      tools:
        -
`
    const { page } = await open('/agents/begun', { files: { 'begun.yaml': begun } })
    await editor(page).waitFor()
    for (const [line, typed, name] of [
      [/agent:$/u, ' as', 'assistant'],
      [/model:$/u, ' de', 'demo:assistant'],
      [/^ *-$/u, ' calc', 'calculator'],
    ] as const) {
      await page.locator('.cm-line', { hasText: line }).first().click()
      await page.keyboard.press('End')
      await page.keyboard.type(typed)
      await page.locator('.cm-tooltip-autocomplete li', { hasText: name }).first().waitFor()
      await page.keyboard.press('Escape')
    }
  })

  test('a file that changed on disk is shown beside the draft: theirs is taken, or mine replaces it', async () => {
    const { page, dir } = await open('/agents/assistant', { allows: /409/u })
    await editor(page).waitFor()
    const theirs = assistant.replace('name: Assistant', 'name: Theirs')
    const question = page.getByRole('alert').filter({ hasText: 'changed on disk' })
    const change = async (text: string) => {
      writeFileSync(join(dir, 'assistant.yaml'), text)
      // Whether the page has heard of it or the server refuses: the question comes.
      await page.keyboard.press('Control+s')
      await question.waitFor()
    }
    // Without a draft the editor follows the file.
    await typeBehind(page, 'stream: true', ' # mine')
    await change(theirs)
    await page.locator('.cm-deletedChunk', { hasText: 'Theirs' }).waitFor()
    await page.getByRole('button', { name: 'Take theirs' }).click()
    await question.waitFor({ state: 'detached' })
    await page.locator('.cm-line', { hasText: 'name: Theirs' }).waitFor()
    expect(await page.locator('.cm-line', { hasText: '# mine' }).count()).toBe(0)

    await typeBehind(page, 'stream: true', ' # mine')
    await change(assistant)
    await page.getByRole('button', { name: 'Keep mine' }).click()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await expect.poll(() => fileOf(dir)).toBe(theirs.replace('stream: true', 'stream: true # mine'))
  })

  test('the steps are drawn: a click leads to the line, the cursor marks its step, running ones light up', async () => {
    const { page, server } = await open('/agents/assistant')
    const step = (id: string) => page.getByTestId('agent-step').filter({ has: page.getByText(id, { exact: true }) })
    await editor(page).waitFor()
    expect(await page.getByTestId('agent-step').count()).toBe(6)
    await page.getByRole('heading', { name: 'After the answer' }).waitFor()
    await step('sketch').click()
    await expect.poll(() => new URL(page.url()).searchParams.get('line')).toBe('20')
    await page.locator('.cm-pointed', { hasText: 'id: sketch' }).waitFor()
    await page.locator('.cm-line', { hasText: 'demo:assistant' }).click()
    await expect.poll(() => step('answer').getAttribute('aria-current')).toBe('step')
    await fetch(`${server.url}/api/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agentId: 'assistant', input: { messages: [{ role: 'user', content: 'Hello!' }] } }),
    })
    await step('answer').filter({ hasText: 'running' }).waitFor()
    expect(await step('prepare').getAttribute('data-active')).toBeNull()
    await page.getByRole('link', { name: 'Runs' }).last().click()
    await page.getByRole('link', { name: /Hello!/u }).waitFor()
    await page.getByRole('button', { name: 'Try' }).click()
    await expect.poll(() => new URL(page.url()).pathname).toBe('/chat/assistant')
  })

  test('what stands in the editor is tried, saved or not: the chat says so, keeps it, and goes back to the file', async () => {
    const say = (words: string) =>
      `workflow:\n  - id: say\n    type: output-generator\n    config: { template: ${words} }\n`
    const { page, dir, openTab } = await open('/agents/say', { files: { 'say.yaml': say('Saved') } })
    await editor(page).waitFor()
    await typeBehind(page, 'type: output-generator', 'x')
    const attempt = page.getByRole('button', { name: 'Try', exact: true })
    await page.getByTestId('agent-fault').first().waitFor()
    expect([await attempt.isDisabled(), await attempt.getAttribute('title')]).toEqual([
      true,
      expect.stringContaining('mistakes'),
    ])
    await page.keyboard.press('Backspace')
    await page.locator('.cm-line', { hasText: 'Saved' }).click()
    await page.keyboard.press('End')
    for (const _ of ' }') await page.keyboard.press('ArrowLeft')
    await page.keyboard.type('x')
    await page.getByText('No mistakes. Not saved yet.').waitFor()
    await attempt.click()
    const line = (tab: Page) => tab.getByTestId('changed-line')
    const told = async (tab: Page, count: number) => {
      await tab.getByTestId('chat-input').fill('Go')
      await tab.getByTestId('send-button').click()
      await expect.poll(() => answers(tab).count()).toBe(count)
      await expect.poll(() => answers(tab).last().getAttribute('data-status')).toBe('completed')
      return answers(tab).last().innerText()
    }
    await expect.poll(() => line(page).innerText()).toMatch(/^Changed for this chat: YAML\s+Reset$/u)
    expect(await told(page, 1)).toContain('Savedx')
    expect(readFileSync(join(dir, 'say.yaml'), 'utf8')).toBe(say('Saved'))
    // Where the tab knows nothing of it, the conversation does.
    await expect.poll(() => new URL(page.url()).searchParams.get('thread')).not.toBeNull()
    const other = await openTab(new URL(page.url()).pathname + new URL(page.url()).search)
    await expect.poll(() => line(other).innerText()).toMatch(/^This chat goes on with YAML of its own\s+Reset$/u)
    expect(await told(other, 2)).toContain('Savedx')
    await line(other).getByRole('button', { name: 'Reset' }).click()
    await line(other).waitFor({ state: 'detached' })
    expect(await told(other, 3)).toMatch(/Saved(?!x)/u)
    await page.goto(new URL('/agents/say', page.url()).href)
    await page.getByText('Not saved yet.').waitFor()
    await page.getByRole('button', { name: 'Discard' }).click()
    await attempt.click()
    expect(await told(page, 1)).toMatch(/Saved(?!x)/u)
    expect(await line(page).count()).toBe(0)
  })

  test('where nobody may edit, the file can be read', async () => {
    const { page } = await open('/agents/assistant', { edit: false })
    await page.locator('.cm-line', { hasText: 'demo:assistant' }).click()
    await page.keyboard.type('x')
    await page.getByText('Read-only').waitFor()
    expect(await page.getByRole('button', { name: 'Save', exact: true }).count()).toBe(0)
    expect(await page.locator('.cm-line', { hasText: 'demo:assistant' }).textContent()).not.toContain('x')
  })

  test('list and page fit every size and both themes, and are accessible', async () => {
    const { page } = await open('/agents')
    await page.getByTestId('agent-row').first().waitFor()
    const look = (name: string) =>
      atEachScreen(page, name, async (screen) => {
        expect(await flaws(page), screen.name).toEqual([])
        await expectAccessibleAt(page, screen)
      })
    await look('agents')
    await page.getByLabel('Find in agents').fill('nobody')
    await page.getByText('No agent has these words.').waitFor()
    await page.getByLabel('Find in agents').fill('assist')
    await page.getByTestId('broken-row').waitFor({ state: 'detached' })
    await page.getByTestId('agent-row').getByRole('link', { name: 'Assistant', exact: true }).click()
    await editor(page).waitFor()
    await page.getByText('No mistakes.').waitFor()
    await look('agent')
  })
})
