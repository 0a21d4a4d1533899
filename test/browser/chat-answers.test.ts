/** What a run asks for and what it may say, in the playground: approvals, tools of the client, questions, files, frames, hostile words. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { ExecutionContext } from '../../src/engine/registry.ts'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
} from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { hostile } from '../support/hostile.ts'
import { expectAccessible } from './axe.ts'
import { answers, ask } from './chat-page.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

const card = (page: Page) => page.getByTestId('tool-card').last()

const gated = agent('tools:\n  - { name: calculator, approval: true }\n')
const calculate = (id: string, expression: string) => [
  ...toolCall(id, 'calculator', { expression }),
  finish('tool-calls'),
]

describe.skipIf(browser === undefined)(`answers in the playground${fault}`, () => {
  test('an approval waits over a reload, and is given with other arguments; a no has its reason', async () => {
    const m = createScriptedModel([
      [reasoning('I must ', 'ask'), ...calculate('c1', '6*7')],
      [text('It is done.'), finish()],
      calculate('c2', '1/0'),
      [text('Then not.'), finish()],
    ])
    const { page, openTab, server } = await openWeb(browser, {
      engine: { agents: { assistant: gated }, scripts: { m } },
    })
    await ask(page, 'go')
    await expect.poll(() => card(page).innerText()).toMatch(/calculator[^]*waiting for you/u)
    await page.reload()
    const second = await openTab(page.url().slice(server.url.length))
    await expect.poll(() => card(second).innerText()).toContain('waiting for you')
    // The arguments stand there once, also while they are edited, and there is a way back.
    const args = card(page).getByRole('group', { name: 'Arguments' }).getByLabel('expression')
    const shown = async () => (await card(page).innerText()).split('6*7').length - 1
    expect(await shown()).toBe(1)
    await card(page).getByRole('button', { name: 'Edit' }).press('Enter')
    await expect.poll(() => args.evaluate((field) => field === document.activeElement)).toBe(true)
    // The schema of the tool names the field and says what it is for.
    expect([await args.inputValue(), await shown()]).toEqual(['6*7', 0])
    expect(await card(page).innerText()).toContain('expression required')
    await card(page).getByRole('button', { name: 'Cancel editing' }).press('Enter')
    expect(await shown()).toBe(1)
    await page.keyboard.press('Enter')
    await args.fill('6*8')
    await card(page).getByRole('button', { name: 'Edit as JSON' }).click()
    const json = card(page).getByLabel('Arguments', { exact: true })
    expect(await json.inputValue()).toBe('{\n  "expression": "6*8"\n}')
    await json.fill('{"expression": "6*9"}')
    await card(page).getByRole('button', { name: 'Allow' }).press('Enter')
    for (const tab of [page, second]) {
      await expect.poll(() => answers(tab).innerText()).toMatch(/54[^]*Allowed with other arguments[^]*It is done/u)
    }
    await expect
      .poll(() => page.getByRole('button', { name: /^Thought for/u }).getAttribute('aria-expanded'))
      .toBe('false')
    await page.getByRole('button', { name: /^Thought for/u }).click()
    expect(await answers(page).innerText()).toContain('I must ask')

    await ask(page, 'again')
    await card(page).getByPlaceholder('Reason, if you deny it').fill('too risky')
    await card(page).getByRole('button', { name: 'Deny' }).click()
    await expect.poll(() => answers(page).last().innerText()).toMatch(/denied[^]*Denied\. too risky[^]*Then not/u)
  })

  test('arguments that were looked at and not changed are allowed as they are; calls beside each other at once', async () => {
    const both = [...toolCall('c2', 'calculator', { expression: '1+1' }), ...calculate('c3', '2+3')]
    const m = createScriptedModel([
      calculate('c1', '6*7'),
      [text('It is done.'), finish()],
      both,
      [text('Both are done.'), finish()],
    ])
    const { page } = await openWeb(browser, { engine: { agents: { assistant: gated }, scripts: { m } } })
    const replies: unknown[] = []
    page.on('request', (request) => request.url().includes('/requests/') && replies.push(request.postDataJSON()))
    await ask(page, 'go')
    await card(page).getByRole('button', { name: 'Edit' }).click()
    await card(page).getByLabel('expression').fill('6*8')
    await card(page).getByLabel('expression').fill('6*7')
    await card(page).getByRole('button', { name: 'Allow' }).click()
    await expect.poll(() => answers(page).innerText()).toMatch(/42[^]*Allowed\.[^]*It is done/u)
    expect(replies).toEqual([{ approved: true }])

    await ask(page, 'again')
    const all = answers(page).last().getByRole('group', { name: 'All calls that wait' })
    await expect.poll(() => all.innerText()).toContain('2 calls wait')
    // Who changes one decides on it alone.
    await card(page).getByRole('button', { name: 'Edit' }).click()
    await all.waitFor({ state: 'detached' })
    await card(page).getByRole('button', { name: 'Cancel editing' }).click()
    await all.getByRole('button', { name: 'Allow all' }).click()
    await expect.poll(() => answers(page).last().innerText()).toMatch(/\b2\b[^]*\b5\b[^]*Both are done/u)
    expect(await all.count()).toBe(0)
    expect(replies).toEqual([{ approved: true }, { approved: true }, { approved: true }])
  })

  test('a tool of the client waits over a reload and is answered in place, with JSON, words or an error', async () => {
    const asks = (id: string) => [...toolCall(id, 'getLocation'), finish('tool-calls')]
    const m = createScriptedModel([
      asks('a'),
      [text('One'), finish()],
      asks('b'),
      [text('Two'), finish()],
      asks('c'),
      [text('Three'), finish()],
    ])
    const { page } = await openWeb(browser, {
      engine: { agents: { assistant: agent('tools:\n  - { name: getLocation, client: true }\n') }, scripts: { m } },
    })
    await ask(page, 'where?')
    await expect.poll(() => card(page).innerText()).toContain('Your app would answer this call. What should it return?')
    await page.reload()
    await card(page).getByRole('textbox').fill('{"city": "Oslo"}')
    await card(page).getByRole('button', { name: 'Send result' }).click()
    await expect.poll(() => answers(page).last().innerText()).toMatch(/"city":"Oslo"[^]*One/u)
    await ask(page, 'where?')
    await card(page).getByRole('textbox').fill('in Oslo')
    expect(await card(page).innerText()).toContain('Not JSON: sent as text.')
    await card(page).getByRole('button', { name: 'Send result' }).click()
    await expect.poll(() => answers(page).last().innerText()).toMatch(/in Oslo[^]*Two/u)
    await ask(page, 'where?')
    await card(page).getByRole('textbox').fill('no signal')
    await card(page).getByRole('button', { name: 'Send as error' }).click()
    await expect.poll(() => answers(page).last().innerText()).toMatch(/no signal[^]*failed[^]*Three/u)
  })

  test('a declared input is a form; a question of a step is one too; an answer without words is a tree', async () => {
    const book = async ({ days }: { days: unknown }, context: ExecutionContext) => {
      const city = await context.request({ message: 'Which city?', schema: { type: 'string' } })
      // As a question of an MCP server comes.
      const asked = { reason: 'mcp-elicitation', message: 'The MCP server "files" asks: Which class?' }
      const schema = { type: 'object', properties: { class: { type: 'string' } } }
      const level = await context.request({ ...asked, schema }).then(String, () => 'none')
      return { city, days, level }
    }
    const trip = `input:
  days: { type: integer, description: "How long" }
workflow:
  - { id: book, type: book, config: { days: "$input.days" }, result: booked }
return: "$booked"
`
    const { page } = await openWeb(browser, { engine: { agents: { trip }, steps: { book: book as never } } })
    const replies: unknown[] = []
    page.on('request', (request) => request.url().includes('/requests/') && replies.push(request.postDataJSON()))
    await page.getByTestId('send-button').click()
    expect(await page.getByRole('alert').innerText()).toBe('days is missing.')
    await page.getByLabel('days').fill('3')
    await page.getByTestId('send-button').click()
    const question = page.getByRole('region', { name: 'A question for you' })
    await expect.poll(() => question.innerText()).toContain('Which city?')
    await page.reload()
    await question.getByRole('textbox').fill('Rome')
    await question.getByRole('button', { name: 'Answer', exact: true }).click()
    await expect.poll(() => question.innerText()).toContain('The MCP server "files" asks: Which class?')
    await question.getByRole('button', { name: 'Decline' }).click()
    await expect.poll(() => answers(page).innerText()).toContain('days: 3')
    expect(replies).toEqual([{ value: 'Rome' }, { declined: true }])
    await expect.poll(() => answers(page).innerText()).toMatch(/Which city\? — Rome[^]*value: "Rome"[^]*days: 3/u)
    expect(await page.getByTestId('user-message').innerText()).toMatch(/days\s*3/u)
  })

  test('frames of every protocol stand beside the answer as it grows', async () => {
    const gate = latch()
    const m = createScriptedModel([[text('Hello'), gate, text(' there'), finish()]])
    const { page } = await openWeb(browser, {
      engine: { agents: { assistant: agent() }, scripts: { m } },
      path: '/chat/assistant?panel=frames',
    })
    await ask(page, 'go')
    const frames = page.getByTestId('frame')
    await expect.poll(() => frames.last().innerText()).toMatch(/text-end/u)
    for (const [name, words] of [
      ['OpenAI', /"delta":\{"content":"Hello"\}/u],
      ['AG-UI', /TEXT_MESSAGE_CONTENT[^]*Hello/u],
      ['Text', /Hello/u],
      ['Log', /"type":"text-delta"[^]*Hello/u],
    ] as const) {
      await page.getByRole('button', { name, exact: true }).click()
      await expect.poll(async () => (await frames.allInnerTexts()).join('\n')).toMatch(words)
    }
    expect(new URL(page.url()).searchParams.get('wire')).toBe('log')
    gate.open()
    await expect.poll(async () => (await frames.allInnerTexts()).join('\n')).toContain('run-end')
    await page.getByLabel('Filter frames').fill('there')
    await expect.poll(() => frames.count()).toBe(1)
    await frames.first().click()
    expect(await page.getByRole('region', { name: 'Frame', exact: true }).innerText()).toMatch(/delta: " there"/u)
    await page.getByRole('button', { name: 'Code' }).click()
    const dialog = page.getByRole('dialog')
    for (const [name, words] of [
      ['curl', 'curl -N'],
      ['OpenAI', 'chat.completions.create'],
      ['useChat', 'DefaultChatTransport'],
      ['AG-UI', 'HttpAgent'],
      ['millrace/client', 'MillraceClient'],
    ] as const) {
      await dialog.getByRole('button', { name, exact: true }).click()
      await expect.poll(() => dialog.innerText()).toContain(words)
    }
    expect(await dialog.innerText()).toContain(`'go'`)
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await flaws(page)).toEqual([])
    await expectAccessible(page)
  })

  test('files reach the model, too large ones are refused here, pictures run nothing', async () => {
    const m = createScriptedModel([[text('Seen.'), finish()]])
    const { page } = await openWeb(browser, {
      engine: { agents: { assistant: agent() }, scripts: { m } },
      handler: { maxBodyBytes: 300_000 },
    })
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="window.pwned=1"><script>parent.pwned=1</script></svg>'
    const input = page.getByTestId('file-input')
    await expect.poll(() => page.getByTestId('chat-input').count()).toBe(1)
    await input.setInputFiles([
      { name: 'a.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(svg) },
      { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('a note') },
    ])
    await input.setInputFiles([{ name: 'big.png', mimeType: 'image/png', buffer: Buffer.alloc(400_000) }])
    await expect.poll(() => page.getByRole('alert').innerText()).toMatch(/^big\.png has 390\.6 KB; there is room for/u)
    await ask(page, 'look')
    await expect.poll(() => answers(page).innerText()).toContain('Seen.')
    const picture = page.getByTestId('user-message').getByRole('img', { name: 'a.svg' })
    await expect.poll(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(9)
    const files = m.calls[0]!.options.prompt.at(-1)!.content as {
      type: string
      mediaType?: string
      filename?: string
    }[]
    expect(files.filter(({ type }) => type === 'file').map(({ mediaType }) => mediaType)).toEqual([
      'image/svg+xml',
      'text/plain',
    ])
    expect(await page.evaluate('window.pwned')).toBeUndefined()
  })

  test('hostile words of a model, a tool, a person and an agent file are words', async () => {
    const all = hostile.join('\n\n')
    const m = createScriptedModel([
      [reasoning(all), text(all), ...toolCall('c', 'echo', { text: all }), finish('tool-calls')],
      [text('The end.'), finish()],
    ])
    const { page } = await openWeb(browser, {
      engine: {
        agents: {
          assistant: agent(
            'tools:\n  - name: echo\n',
            `metadata:\n  name: ${JSON.stringify(hostile[1])}\n  description: ${JSON.stringify(hostile[2])}\n`,
          ),
        },
        scripts: { m },
        tools: { echo: { description: 'x', parameters: {}, execute: () => ({ [hostile[1]!]: hostile }) } as never },
      },
    })
    await ask(page, all)
    await expect.poll(() => answers(page).innerText()).toContain('The end.')
    await page.getByRole('button', { name: /^Thought/u }).click()
    await card(page).getByRole('button').first().click()
    await expect.poll(() => card(page).innerText()).toContain('<script>window.pwned=1</script>')
    const found = await page.evaluate(() => ({
      pwned: (globalThis as { pwned?: unknown }).pwned,
      elements: document.querySelectorAll('main script, main iframe, main base, main style, main form form').length,
      links: [...document.querySelectorAll('main a')].map((link) => link.getAttribute('href')!),
      pictures: [...document.querySelectorAll('main img')].map((image) => image.getAttribute('src')!),
    }))
    expect(found.pwned).toBeUndefined()
    expect(found.elements).toBe(0)
    for (const href of found.links) expect(href).toMatch(/^(?:https?:|mailto:|\/)/u)
    expect(found.pictures).toEqual([])
  })
})
