/** A chat that tries another model, prompt, temperature and tools than its agent's file, in a real browser. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { expectAccessibleAt } from './axe.ts'
import { answers } from './chat-page.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openTabs } from './web.ts'

const { browser, fault } = await launchBrowser()

/** Models that tell what they got. */
const models = `import { createScriptedModel, finish, text } from ${JSON.stringify(
  pathToFileURL(join(import.meta.dirname, '../../src/models/testing/scripted-model.ts')).href,
)}
const tell = (name) => createScriptedModel(({ options: { prompt, temperature, tools = [] } }) => {
  const system = prompt.find(({ role }) => role === 'system')?.content
  return [text(JSON.stringify({ name, temperature, system, tools: tools.map(({ name }) => name) })), finish()]
})`
const config = (edit: string) => `${models}
export default { models: { providers: { tell } }, server: { graceMs: 0, edit: ${edit} } }`
const poet = `# Ours.
metadata: { name: Poet, description: Writes poems. }
workflow:
  - id: plan
    type: llm
    result: plan
    config: { model: tell:planner }
  - id: answer
    type: llm
    config:
      model: tell:small # cheap
      stream: true
      system: Be brief.
      tools:
        - calculator
        - getCurrentTime # now
`
const plain = `workflow:
  - id: say
    type: output-generator
    config: { template: Hello }
`

async function open(path: string, { edit = 'true', allows = /^$/u } = {}) {
  const dir = folder({ 'poet.yaml': poet, 'plain.yaml': plain, 'millrace.config.js': config(edit) })
  const server = await serve({
    dir,
    data: edit === '"token"' ? join(dir, 'data') : 'none',
    env: {},
    port: 0,
    log: () => undefined,
  })
  const opened = await openTabs(browser, server, { path, allows })
  return { dir, server, file: join(dir, 'poet.yaml'), ...opened }
}

const line = (page: Page) => page.getByTestId('changed-line')
const panel = (page: Page) => page.getByRole('region', { name: 'Agent' })

/** What the model was told, in the last of so many answers. */
async function told(page: Page, count: number, words = 'Hi'): Promise<unknown> {
  await page.getByTestId('chat-input').fill(words)
  await page.getByTestId('send-button').click()
  await expect.poll(() => answers(page).count()).toBe(count)
  const last = answers(page).last()
  await expect.poll(() => last.getAttribute('data-status')).toBe('completed')
  return JSON.parse(/\{.*\}/u.exec(await last.innerText())![0])
}

const ofFile = { name: 'small', system: 'Be brief.', tools: ['calculator', 'getCurrentTime'] }
const ofChat = { name: 'big', temperature: 0.2, system: 'Be long.\nRhyme.', tools: ['getCurrentTime'] }

describe.skipIf(browser === undefined)(`a chat with settings of its own${fault}`, () => {
  test('another model, prompt, temperature and tools answer in this chat alone, over a reload, until the reset', async () => {
    const { page, openTab, file } = await open('/chat/poet')
    await page.getByRole('button', { name: 'Agent', exact: true }).click()
    // The step that answers is chosen.
    expect(await panel(page).getByLabel('Step').inputValue()).toBe('main/answer')
    expect(await panel(page).getByLabel('Model').inputValue()).toBe('tell:small')
    const models = panel(page).getByLabel('Choose one of this server')
    expect(await models.locator('option').allInnerTexts()).toEqual(['Models', 'tell:planner', 'tell:small'])
    await models.selectOption('tell:planner')
    expect(await panel(page).getByLabel('Model').inputValue()).toBe('tell:planner')
    await expect.poll(() => line(page).innerText()).toMatch(/^Changed for this chat: model\s+Reset$/u)
    await panel(page).getByLabel('Schema of calculator').click()
    await panel(page).getByText('expression').first().waitFor()

    await panel(page).getByLabel('Model').fill('tell:big')
    await panel(page).getByLabel('Temperature').fill('0.2')
    await panel(page).getByLabel('System prompt').fill('Be long.\nRhyme.')
    await panel(page).getByRole('checkbox', { name: 'calculator' }).uncheck()
    await expect
      .poll(() => line(page).innerText())
      .toMatch(/^Changed for this chat: model, temperature, prompt, tools/u)
    await page.getByRole('button', { name: 'Agent, changed for this chat' }).waitFor()
    expect(await told(page, 1)).toEqual(ofChat)
    await answers(page).locator('xpath=..').getByText('changed agent').waitFor()

    // With the thread that it has got, after a reload.
    await expect.poll(() => new URL(page.url()).searchParams.get('thread')).not.toBeNull()
    await page.reload()
    await expect.poll(() => line(page).innerText()).toContain('model, temperature, prompt, tools')
    expect(await panel(page).getByLabel('System prompt').inputValue()).toBe('Be long.\nRhyme.')
    expect(await told(page, 2)).toEqual(ofChat)
    await page.getByRole('button', { name: 'Answer again' }).last().click()
    await page.getByText('2/2', { exact: true }).waitFor()
    await expect.poll(() => answers(page).last().innerText()).toContain('"big"')

    // Where the tab knows nothing of it, the conversation does: what is changed there is a change of that.
    const thread = page.url()
    const guest = await openTab(new URL(thread).pathname + new URL(thread).search)
    await expect.poll(() => line(guest).innerText()).toMatch(/^This chat goes on with YAML of its own\s+Reset$/u)
    await expect.poll(() => panel(guest).getByLabel('Model').inputValue()).toBe('tell:big')
    expect(await panel(guest).getByLabel('System prompt').inputValue()).toBe('Be long.\nRhyme.')
    await panel(guest).getByLabel('Temperature').fill('0.9')
    await expect.poll(() => line(guest).innerText()).toMatch(/^Changed for this chat: YAML, temperature\s+Reset$/u)
    expect(await told(guest, 3)).toEqual({ ...ofChat, temperature: 0.9 })
    await guest.close()

    // Other chats, and other tabs of them, have the file's.
    await page.getByRole('button', { name: 'New chat', exact: true }).click()
    await expect.poll(() => line(page).count()).toBe(0)
    expect(await panel(page).getByLabel('Model').inputValue()).toBe('tell:small')
    expect(await told(page, 1)).toEqual(ofFile)
    const other = await openTab('/chat/poet')
    expect(await told(other, 1)).toEqual(ofFile)

    // Back in the first one, the reset is one click.
    await page.goto(thread)
    await line(page).getByRole('button', { name: 'Reset' }).click()
    await expect.poll(() => line(page).count()).toBe(0)
    expect(await panel(page).getByLabel('Model').inputValue()).toBe('tell:small')
    expect(await panel(page).getByRole('checkbox', { name: 'calculator' }).isChecked()).toBe(true)
    expect(await told(page, 4)).toEqual(ofFile)
    expect(readFileSync(file, 'utf8')).toBe(poet)
  })

  test('what does not fit is told at its field and at what is sent, and what fits is saved to the file as a change of it', async () => {
    const { page, file } = await open('/chat/poet?panel=agent', { allows: /409/u })
    const model = panel(page).getByLabel('Model')
    await model.fill('nobody:x')
    await panel(page).getByText('unknown model provider "nobody"').waitFor()
    expect(await model.getAttribute('aria-invalid')).toBe('true')
    const save = panel(page).getByRole('button', { name: 'Save to the agent’s file' })
    await expect.poll(() => save.isDisabled()).toBe(true)
    await page.getByTestId('chat-input').fill('Hi')
    await page.getByTestId('send-button').click()
    await page.getByText('Not sent: what was changed for this chat does not fit.').waitFor()
    await model.fill('tell:big')
    await page.getByRole('button', { name: 'Send again' }).click()
    await expect.poll(() => answers(page).last().innerText()).toContain('"big"')

    await panel(page).getByRole('checkbox', { name: 'getCurrentTime' }).uncheck()
    // The file is written by somebody else, before the dialog and while it is open.
    writeFileSync(file, poet.replace('# Ours.', '# Theirs.'))
    await save.click()
    const dialog = page.getByRole('dialog')
    await expect
      .poll(() => dialog.locator('pre').innerText())
      .toMatch(/- {7}model: tell:small # cheap\s+\+ {7}model: tell:big # cheap[^]*- {9}- getCurrentTime # now/u)
    writeFileSync(file, poet.replace('# Ours.', '# Theirs, again.'))
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.getByText('The file has changed meanwhile.').waitFor()
    expect(readFileSync(file, 'utf8')).toContain('tell:small')
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(readFileSync(file, 'utf8')).toBe(
      poet
        .replace('# Ours.', '# Theirs, again.')
        .replace('tell:small', 'tell:big')
        .replace('        - getCurrentTime # now\n', ''),
    )
    await expect.poll(() => line(page).count()).toBe(0)
    await expect.poll(() => panel(page).getByLabel('Model').inputValue()).toBe('tell:big')
    expect(await told(page, 2)).toEqual({ ...ofFile, name: 'big', tools: ['calculator'] })
  })

  test('who may not edit sees it and is offered nothing; with the token of the server all is offered', async () => {
    const { page, server } = await open('/chat/poet?panel=agent', { edit: '"token"', allows: /403/u })
    await expect.poll(() => panel(page).innerText()).toMatch(/Model\s+tell:small\s+System prompt\s+Be brief\./u)
    expect(await panel(page).locator('input, textarea').count()).toBe(0)
    await panel(page).getByText('open the address for editing').waitFor()
    const refused = await fetch(`${server.url}/api/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agentId: 'poet', input: {}, pipeline: poet }),
    })
    expect(refused.status).toBe(403)
    await page.goto(`${server.url}/chat/plain?panel=agent`)
    await panel(page).getByText('No step of this agent calls a model').waitFor()

    await page.goto(`${server.url}/#edit=${server.editToken}`)
    await page.goto(`${server.url}/chat/poet?panel=agent`)
    await panel(page).getByLabel('Model').fill('tell:big')
    expect(await told(page, 1)).toMatchObject({ name: 'big' })
  })

  test('the panel, the line and the dialog fit every size and both themes, and are accessible', async () => {
    const { page } = await open('/chat/poet?panel=agent')
    await panel(page).getByLabel('Model').fill('nobody:x')
    await panel(page).getByLabel('System prompt').fill('Be long.\n'.repeat(4))
    await panel(page).getByRole('checkbox', { name: 'calculator' }).uncheck()
    await panel(page).getByText('unknown model provider').waitFor()
    const look = (name: string) =>
      atEachScreen(page, name, async (screen) => {
        expect(await flaws(page), screen.name).toEqual([])
        await expectAccessibleAt(page, screen)
      })
    await look('play-panel')
    await panel(page).getByLabel('Model').fill('tell:big')
    await panel(page).getByRole('button', { name: 'Save to the agent’s file' }).click()
    await page.getByRole('dialog').locator('ins').first().waitFor()
    await look('play-save')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Close Agent' }).click()
    await look('play-line')
  })
})
