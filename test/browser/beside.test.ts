/** Agents and models side by side in a real browser. Models are held on latches. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import {
  createScriptedModel,
  finish,
  latch,
  text,
  toolCall,
  errorPart,
} from '../../src/models/testing/scripted-model.ts'
import { expectAccessibleAt } from './axe.ts'
import { ask, growing } from './chat-page.ts'
import { launchBrowser } from './chromium.ts'
import { flaws } from './flaws.ts'
import { enter, tabTo } from './keys.ts'
import { atEachScreen, screens, type Screen } from './screens.ts'
import { openWeb } from './web.ts'

const { browser, fault } = await launchBrowser()

const column = (page: Page, n: number) => page.getByTestId('column').nth(n - 1)
const answers = (page: Page, n: number) => column(page, n).getByTestId('assistant-message')

const yaml = (model: string, more = '') => `
metadata: { description: Answers with ${model} }
workflow:
  - id: answer
    type: llm
    config: { model: "script:${model}", stream: true, messages: $input.messages${more} }
`

/** A dialog is no harder where there is more room. */
const narrow = screens.filter(({ name }) => name === '360-dark')

const look =
  (page: Page) =>
  async ({ name }: Pick<Screen, 'name'>) => {
    expect(await flaws(page), name).toEqual([])
    await expectAccessibleAt(page, { name })
  }

describe.skipIf(browser === undefined)(`side by side${fault}`, () => {
  test('one message for all: words grow beside each other, one fails alone, and what each took is compared', async () => {
    const [first, second] = [
      [latch(), latch()],
      [latch(), latch()],
    ] as const
    const dear = { in: 100, out: 50 }
    const poet = createScriptedModel([
      [...growing('The mill', first[0], ' turns', first[1], ' slowly.'), finish('stop', dear)],
      [text('By water.'), finish('stop', dear)],
    ])
    const clerk = createScriptedModel([
      [...growing('A mill', second[0], ' is a', second[1], ' machine.'), finish('stop', { in: 10, out: 5 })],
      [text('By wind.'), finish('stop', { in: 10, out: 5 })],
    ])
    const broken = createScriptedModel([
      [errorPart(new Error('the model fell over')), finish('error')],
      [text('Better now.'), finish()],
    ])
    const { page, server, openTab } = await openWeb(browser, {
      engine: {
        agents: { poet: yaml('poet'), clerk: yaml('clerk'), broken: yaml('broken', ', retries: 0') },
        scripts: { poet, clerk, broken },
        pricing: { 'script:poet': { input: 1, output: 1 }, 'script:clerk': { input: 1, output: 1 } },
      },
      path: '/overview',
    })
    await page.getByRole('button', { name: 'Find' }).click()
    await page.keyboard.type('compare models')
    await page.getByRole('option', { name: 'Side by side' }).waitFor()
    await page.keyboard.press('Enter')
    await expect.poll(() => new URL(page.url()).search).toMatch(/^\?a=\w+&a=\w+$/u)
    await column(page, 1).getByLabel('Agent of column 1').selectOption('poet')
    await column(page, 2).getByLabel('Agent of column 2').selectOption('clerk')
    await page.getByRole('button', { name: 'Add a column' }).click()
    await column(page, 3).getByLabel('Agent of column 3').selectOption('broken')
    await ask(page, 'What is a mill?')

    // Both grow at the same time: each token is seen before its model says the next one.
    for (const gate of [first[0], second[0]]) await gate.reached
    await expect.poll(() => answers(page, 1).innerText()).toBe('The mill')
    await expect.poll(() => answers(page, 2).innerText()).toBe('A mill')
    first[0].open()
    await expect.poll(() => answers(page, 1).innerText()).toBe('The mill turns')
    expect(await answers(page, 2).innerText()).toBe('A mill')
    second[0].open()
    await expect.poll(() => answers(page, 2).innerText()).toBe('A mill is a')
    await expect.poll(() => answers(page, 3).getByRole('alert').innerText()).toContain('the model fell over')
    expect(await page.getByText(/fastest|cheapest/u).count()).toBe(0)

    // The one that failed answers again, by itself.
    await column(page, 3).getByRole('button', { name: 'Try again' }).click()
    await expect.poll(() => answers(page, 3).innerText()).toBe('Better now.')
    expect(await answers(page, 1).getAttribute('data-status')).toBe('running')
    first[1].open()
    await expect.poll(() => answers(page, 1).getAttribute('data-status')).toBe('completed')
    second[1].open()
    await expect.poll(() => answers(page, 2).innerText()).toBe('A mill is a machine.')
    const line = (n: number) => column(page, n).getByTestId('answer-line').last()
    await expect
      .poll(() => line(1).innerText())
      .toMatch(/Time\s+[\d.]+ m?s[^]*First token\s+\d+ ms[^]*Tokens\s+150[^]*Cost\s+\$0\.0001/u)
    // Its price is not known, so none is the cheapest.
    expect(await line(3).innerText()).toMatch(/Cost\s+–/u)
    await expect.poll(() => page.getByText('fastest').count()).toBeGreaterThan(0)
    expect(await page.getByText('cheapest').count()).toBe(0)

    await atEachScreen(page, 'beside', look(page))
    // On a phone one at a time, and the address says which.
    const left = (n: number) => column(page, n).evaluate((element) => Math.round(element.getBoundingClientRect().left))
    await page.getByRole('navigation', { name: 'Columns' }).getByRole('button', { name: '2 clerk' }).click()
    await expect.poll(() => new URL(page.url()).searchParams.get('show')).toBe('2')
    await page.reload()
    await expect.poll(() => answers(page, 2).innerText()).toBe('A mill is a machine.')
    await expect.poll(() => left(2)).toBe(0)
    await page.setViewportSize({ width: 1440, height: 900 })

    await page.getByRole('button', { name: 'Compare the runs' }).click()
    const pairs = page.getByRole('dialog').getByRole('link')
    expect(await pairs.allInnerTexts()).toEqual(['1 poet and 2 clerk', '1 poet and 3 broken', '2 clerk and 3 broken'])
    await page.keyboard.press('Escape')

    // Without the third one; a second message goes on in each conversation.
    await column(page, 3).getByRole('button', { name: 'Remove column 3' }).click()
    await expect.poll(() => page.getByText('cheapest').count()).toBe(1)
    expect(await line(2).innerText()).toMatch(/Cost\s+<\$0\.0001[^]*cheapest/u)
    await ask(page, 'What moves it?')
    await expect.poll(() => answers(page, 1).allInnerTexts()).toEqual(['The mill turns slowly.', 'By water.'])
    await expect.poll(() => answers(page, 2).allInnerTexts()).toEqual(['A mill is a machine.', 'By wind.'])
    expect(JSON.stringify(clerk.calls[1]!.options.prompt)).toMatch(/What is a mill[^]*is a machine[^]*What moves it/u)
    expect(JSON.stringify(clerk.calls[1]!.options.prompt)).not.toContain('slowly')

    // The address is all that another tab needs.
    const query = new URL(page.url()).searchParams
    expect(query.getAll('a')).toEqual(['poet', 'clerk'])
    expect(new Set(query.getAll('thread')).size).toBe(2)
    const other = await openTab(page.url().slice(server.url.length))
    await expect.poll(() => answers(other, 2).allInnerTexts()).toEqual(['A mill is a machine.', 'By wind.'])
    await expect.poll(() => other.getByText('cheapest').count()).toBe(2)

    // From here to the comparison of the two runs, and to the chat with one of them.
    await other.getByRole('button', { name: 'Compare the runs' }).click()
    await other.getByRole('region', { name: 'First difference' }).waitFor()
    await page.getByRole('button', { name: 'Open in chat: column 2' }).click()
    await expect.poll(() => new URL(page.url()).pathname).toBe('/chat/clerk')
    await expect.poll(() => page.getByTestId('assistant-message').allInnerTexts()).toHaveLength(2)
    await page.goBack()
    await expect.poll(() => answers(page, 1).count()).toBe(2)
  })

  test('approvals are answered in the column; Stop stops all, or one; a changed message is asked in every column', async () => {
    const gates = [latch(), latch(), latch(), latch()] as const
    const careful = createScriptedModel([
      [...toolCall('c1', 'pay', { sum: 5 }), finish('tool-calls')],
      [text('Paid.'), finish()],
      [...growing('One', gates[0], ' more'), finish()],
      [...growing('Two', gates[1], ' more'), finish()],
      [text('Done with care.'), finish()],
    ])
    const quick = createScriptedModel([
      [text('Nothing to pay.'), finish()],
      [...growing('Uno', gates[2], ' more'), finish()],
      [...growing('Due', gates[3], ' more'), finish()],
      [text('Done at once.'), finish()],
    ])
    const city = 'input: { type: object, required: [city], properties: { city: { type: string } } }'
    const { page, server } = await openWeb(browser, {
      engine: {
        agents: {
          careful: yaml('careful', ', tools: [{ name: pay, approval: true }]'),
          quick: yaml('quick'),
          north: city + yaml('maps'),
          south: city + yaml('maps'),
        },
        scripts: { careful, quick, maps: createScriptedModel([0, 1].map(() => [text('Here it is.'), finish()])) },
        tools: { pay: { parameters: { type: 'object' }, execute: () => 'paid' } },
      },
      path: '/chat/careful',
    })
    // Nobody may edit here, so the second column has another agent, and none chooses a model.
    await enter(page, page.getByRole('button', { name: 'Side by side' }))
    const model = column(page, 2).getByLabel('Model of column 2')
    await expect.poll(() => model.getAttribute('placeholder')).toBe('script:quick')
    expect(await model.isDisabled()).toBe(true)
    await page.getByText('Only people who may edit agents can choose models here.').waitFor()
    await tabTo(page, page.getByTestId('chat-input'))
    await page.keyboard.type('Pay Ann')
    await page.keyboard.press('Enter')
    await expect.poll(() => answers(page, 2).innerText()).toBe('Nothing to pay.')
    await enter(page, column(page, 1).getByRole('button', { name: 'Allow' }))
    await expect.poll(() => answers(page, 1).innerText()).toContain('Paid.')

    await ask(page, 'Count')
    for (const gate of [gates[0], gates[2]]) await gate.reached
    await page.getByTestId('stop-button').click()
    for (const n of [1, 2]) await expect.poll(() => answers(page, n).last().innerText()).toContain('Stopped.')
    await ask(page, 'Count again')
    for (const gate of [gates[1], gates[3]]) await gate.reached
    await column(page, 1).getByRole('button', { name: 'Stop column 1' }).click()
    await expect.poll(() => answers(page, 1).last().innerText()).toContain('Stopped.')
    gates[3].open()
    await expect.poll(() => answers(page, 2).last().innerText()).toBe('Due more')
    // Only the answers to the first message are both whole.
    expect(await page.getByText('fastest').count()).toBe(1)

    await column(page, 2).getByRole('button', { name: 'Edit and send again' }).last().click()
    await page.getByLabel('Your message').fill('Count to one')
    await page.getByLabel('Your message').press('Enter')
    await expect.poll(() => answers(page, 1).last().innerText()).toBe('Done with care.')
    await expect.poll(() => answers(page, 2).last().innerText()).toBe('Done at once.')
    for (const n of [1, 2]) expect(await column(page, n).getByText('2/2', { exact: true }).count()).toBe(1)

    // One form for agents that take the same; with another agent beside it there is none.
    await page.goto(`${server.url}/beside?a=north&a=south`)
    await page.getByLabel('city').fill('Rome')
    await ask(page, 'Show me')
    for (const n of [1, 2]) {
      await expect.poll(() => answers(page, n).innerText()).toBe('Here it is.')
      expect(await column(page, n).getByTestId('user-message').innerText()).toMatch(/Show me\s+city\s+Rome/u)
    }
    await column(page, 1).getByLabel('Agent of column 1').selectOption('quick')
    await page.getByText('south needs fields that the others do not have: city.').waitFor()
    expect(await page.getByTestId('chat-input').count()).toBe(0)
  })

  test('one agent with two models, a prompt and a temperature: in the address, over a reload, and on into the chat', async () => {
    const says = (...words: string[]) => createScriptedModel(words.map((word) => [text(word), finish()]))
    const small = says('Small.', 'Small again.')
    const large = says('Large.', 'Large again.', 'Here.', 'In the chat.')
    const { page } = await openWeb(browser, {
      engine: { agents: { poet: yaml('small'), other: yaml('large') }, scripts: { small, large } },
      handler: { edit: true },
      path: '/agents/poet',
      allows: /422/u,
    })
    await page.getByRole('button', { name: 'Side by side' }).click()
    await column(page, 2).getByLabel('Model of column 2').fill('script:large')
    await column(page, 2).getByLabel('Model of column 2').press('Enter')
    expect(new URL(page.url()).search).toBe('?a=poet&a=poet&model=script:large')
    await column(page, 2).getByRole('button', { name: 'Settings of column 2' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('System prompt').fill('You rhyme.')
    await dialog.getByLabel('Temperature').fill('0.5')
    await atEachScreen(page, 'beside-settings', look(page), narrow)
    await page.setViewportSize({ width: 1440, height: 900 })
    await dialog.getByRole('button', { name: 'Use' }).click()
    await ask(page, 'Who are you?')
    await expect.poll(() => answers(page, 1).innerText()).toBe('Small.')
    await expect.poll(() => answers(page, 2).innerText()).toBe('Large.')
    expect(large.calls[0]!.options).toMatchObject({
      temperature: 0.5,
      prompt: [{ role: 'system', content: 'You rhyme.' }, { role: 'user' }],
    })
    expect(small.calls[0]!.options.prompt.map(({ role }) => role)).toEqual(['user'])

    await page.reload()
    await expect.poll(() => answers(page, 2).innerText()).toBe('Large.')
    expect(await column(page, 2).getByLabel('Model of column 2').inputValue()).toBe('script:large')
    await ask(page, 'And now?')
    await expect.poll(() => answers(page, 1).last().innerText()).toBe('Small again.')
    await expect.poll(() => answers(page, 2).last().innerText()).toBe('Large again.')
    expect(large.calls[1]!.options.prompt).toHaveLength(4)

    // A model that nobody has: that column says so, and the other one answers.
    await column(page, 1).getByLabel('Model of column 1').fill('nobody:x')
    await column(page, 1).getByLabel('Model of column 1').press('Enter')
    await ask(page, 'Are you there?')
    await expect.poll(() => answers(page, 2).last().innerText()).toBe('Here.')
    await expect.poll(() => column(page, 1).getByRole('alert').innerText()).toMatch(/no such model[^]*nobody:x/u)
    await page.getByRole('button', { name: 'Open in chat: column 2' }).click()
    await ask(page, 'Still you?')
    await expect.poll(() => page.getByTestId('assistant-message').last().innerText()).toBe('In the chat.')
  })
})
