/** What a person reads when an answer fails or a message is not sent, and what is asked of them before. */
import { describe, expect, test } from 'vitest'
import { refuse } from '../../src/models/scripted.ts'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import { agent } from '../support/engine.ts'
import { expectAccessibleAt } from './axe.ts'
import { answers, ask } from './chat-page.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { atEachScreen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

describe.skipIf(browser === undefined)(`failures in the playground${fault}`, () => {
  test('a busy model: what happened, what to do, seconds that count down; what cannot change has no second try', async () => {
    const busy = createScriptedModel([
      [refuse(429, 'You exceeded your current quota.', { retryAfter: 20 })],
      [text('Here I am.'), finish()],
    ])
    const { page } = await openWeb(browser, {
      engine: {
        agents: { assistant: agent('retries: 0').replace('script:m', 'script:busy') },
        scripts: { busy },
      },
      path: '/chat/assistant',
    })
    await ask(page, 'Hello?')
    const answer = answers(page).last()
    const alert = answer.getByRole('alert')
    await expect
      .poll(() => alert.innerText())
      .toBe('The model is busy\n\nscript:busy answered 429: You exceeded your current quota. Try again in 20 s.')
    const again = answer.getByRole('button', { name: /^Try again/u })
    const left = async () => Number(/\((\d+)\)/u.exec(await again.innerText())?.[1])
    const first = await left()
    expect(first).toBeLessThanOrEqual(20)
    await expect.poll(left).toBeLessThan(first)
    expect(await answer.locator('code', { hasText: 'rate-limited' }).count()).toBe(1)
    // The card begins where text begins.
    const [card, message] = await Promise.all([alert.locator('..').boundingBox(), answer.boundingBox()])
    expect(card!.x).toBe(message!.x)
    await atEachScreen(page, 'chat-failure', async ({ name }) => {
      expect(await flaws(page), name).toEqual([])
      await expectAccessibleAt(page, { name })
    })
    await again.click()
    await expect.poll(() => answers(page).last().innerText()).toContain('Here I am.')
  })

  test('a form asks for the message that the agent reads; a conversation without one is called by its inputs', async () => {
    const m = createScriptedModel([
      [text('Two.'), finish()],
      [text('One.'), finish()],
    ])
    const form = (step: string) => `input:
  city: string
  days: { type: integer, default: 3 }
workflow:
  - { id: answer, type: llm, config: { model: "script:m", stream: true, ${step} } }
`
    const { page, server } = await openWeb(browser, {
      engine: {
        agents: {
          trip: form('system: "Plan for $input.city, $input.days"'),
          words: form('system: "For $input.days days", messages: "$input.city"'),
          missing:
            'workflow: [{ id: answer, type: llm, config: { model: "script:m", system: "$input.style.tone" } }]\ninput: { style: object }\n',
        },
        scripts: { m },
      },
      path: '/chat/trip',
    })
    const field = page.getByTestId('chat-input')
    await page.getByLabel('city').fill('Rome')
    expect(await field.getAttribute('placeholder')).toBe('Message (required)')
    await page.getByTestId('send-button').click()
    expect(await page.getByRole('alert').innerText()).toBe('The message is missing.')
    expect(await page.evaluate(() => document.activeElement?.getAttribute('data-testid'))).toBe('chat-input')
    await page.keyboard.type('Plan it')
    await page.keyboard.press('Enter')
    await expect.poll(() => answers(page).innerText()).toContain('Two.')

    await page.goto(`${server.url}/chat/words`)
    expect(await field.getAttribute('placeholder')).toBe('Message (optional)')
    await page.getByLabel('city').fill('Rome')
    await page.getByTestId('send-button').click()
    await expect.poll(() => answers(page).innerText()).toContain('One.')
    await page.goto(`${server.url}/threads`)
    await page.getByRole('link', { name: 'city Rome, days 3' }).waitFor()

    // A value is missing: the same again would fail again.
    await page.goto(`${server.url}/chat/missing`)
    await page.getByLabel('style').fill('{}')
    await ask(page, 'Hi')
    const answer = answers(page)
    await expect
      .poll(() => answer.getByRole('alert').innerText())
      .toMatch(/^A value is missing\n\n\$input\.style\.tone/u)
    expect(await answer.getByRole('button', { name: /again/iu }).count()).toBe(0)
  })

  test('the line under an answer names its numbers; formulas are drawn and copied as they are written; the file of a message stays while it is edited', async () => {
    const gate = latch()
    const m = createScriptedModel([
      [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: '$E = mc^2$, \\(\\nosuch\\) for $5 and\n\n$$\\int_0^1 ' },
        gate,
        { type: 'text-delta', id: 't', delta: 'x^2\\,dx$$' },
        { type: 'text-end', id: 't' },
        finish('stop', { in: 10, out: 36 }),
      ],
      [text('Without.'), finish()],
    ])
    const { page, server } = await openWeb(browser, {
      engine: { agents: { assistant: agent() }, scripts: { m }, pricing: { 'script:m': { input: 5, output: 7 } } },
    })
    await page.getByTestId('file-input').setInputFiles([
      { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('one') },
      { name: 'b.txt', mimeType: 'text/plain', buffer: Buffer.from('two') },
    ])
    await page.getByRole('list', { name: 'Attached files' }).waitFor()
    await ask(page, 'Look')
    // One that is not finished, or has a mistake, is shown as it is written.
    await gate.reached
    await expect.poll(() => answers(page).locator('math').count()).toBe(1)
    expect(await answers(page).innerText()).toMatch(/\\\(\\nosuch\\\) for \$5 and\s+\$\$\\int_0\^1/u)
    gate.open()
    await expect.poll(() => answers(page).locator('math').count()).toBe(2)
    const integral = answers(page).locator('math').nth(1)
    expect(await integral.evaluate((math) => math.namespaceURI)).toBe('http://www.w3.org/1998/Math/MathML')
    expect((await integral.boundingBox())!.height).toBeGreaterThan(20)
    const copied = await answers(page).evaluate((answer) => {
      getSelection()!.selectAllChildren(answer)
      return getSelection()!.toString()
    })
    expect(copied.trim()).toBe('$E = mc^2$, \\(\\nosuch\\) for $5 and\n\n$$\\int_0^1 x^2\\,dx$$')
    const line = page.getByRole('article').first().locator('footer')
    await expect
      .poll(async () => (await line.innerText()).replaceAll(/\s+/gu, ' '))
      .toMatch(/[\d.]+ m?s · first token [\d.]+ m?s · 46 tokens · \$0\.0003 · Open run ↗/u)

    await page.getByRole('button', { name: 'Edit and send again' }).click()
    const files = page.getByRole('list', { name: 'Files of your message' })
    await expect.poll(() => files.getByRole('listitem').allInnerTexts()).toEqual(['a.txt', 'b.txt'])
    await files.getByRole('button', { name: 'Remove a.txt' }).press('Enter')
    await page.getByRole('textbox', { name: 'Your message' }).press('Enter')
    await expect.poll(() => answers(page).innerText()).toBe('Without.')
    const { content } = m.calls[1]!.options.prompt.at(-1)! as { content: { type: string; filename?: string }[] }
    expect(content.flatMap(({ filename }) => filename ?? [])).toEqual(['b.txt'])
    await line.getByRole('link', { name: 'Open run' }).click()
    await expect.poll(() => page.getByTestId('run-room').locator('> header').innerText()).toContain('from the page')
    const { runs } = (await (await fetch(`${server.url}/api/runs`)).json()) as { runs: { protocol: string }[] }
    expect(runs.map(({ protocol }) => protocol)).toEqual(['page', 'page'])
  })
})
