/** The agents that ship, on the demo model: each step shows that it has read its prompt. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createRuntime } from '../../src/project/create-runtime.ts'

const agents = Object.fromEntries(
  readdirSync('agents')
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => [file.replace('.yaml', ''), readFileSync(`agents/${file}`, 'utf8')]),
)

/** What each step said, by its path; calls of the model count as their step. */
async function said(agent: string, words: string): Promise<Map<string, string>> {
  const runtime = createRuntime({ agents, environment: { MILLRACE_DEMO_DELAY_MS: '0' } })
  onTestFinished(() => runtime.close())
  const run = await runtime.start(agent, { messages: [{ role: 'user', content: words }] })
  const texts = new Map<string, string>()
  for await (const entry of run.parts) {
    const step = entry.step.replace(/\/\d+$/u, '')
    if (entry.type === 'text-delta') texts.set(step, (texts.get(step) ?? '') + entry.delta)
  }
  expect(await run.result).toMatchObject({ outcome: 'completed' })
  return texts
}

const textOf = (texts: Map<string, string>, end: string) =>
  [...texts].filter(([step]) => step.endsWith(end)).map(([, text]) => text)

describe('demo agents', () => {
  test('panel: three speak from their side, and the verdict weighs all three', async () => {
    const texts = await said('panel', 'Should we rewrite the billing service?')
    const [hope, doubt, costs] = ['hope', 'doubt', 'count'].map((step) => textOf(texts, step)[0]!)
    expect(hope).toMatch(/optimist.*billing service.*can go well/u)
    expect(doubt).toMatch(/sceptic.*billing service.*can go wrong/u)
    expect(costs).toMatch(/accountant.*billing service.*costs/u)
    const [verdict] = textOf(texts, 'verdict')
    expect(verdict).toMatch(/judge.*The optimist: .*can go well.*The sceptic: .*The accountant: .*recommend/u)
  })

  test('refine: drafts name the topic, each judgement has a score and advice, and the answer uses the advice', async () => {
    const texts = await said('refine', 'A slogan for a bakery')
    for (const draft of textOf(texts, 'write')) expect(draft).toContain('A slogan for a bakery')
    const judged = textOf(texts, 'judge').join('')
    const advice = [...judged.matchAll(/"score":(\d),"advice":"((?:[^"\\]|\\.)*)"/gu)].map(([, score, text]) => [
      score,
      text,
    ])
    expect(advice.map(([score]) => score)).toEqual(['0', '1', '2'])
    expect(new Set(advice.map(([, text]) => text)).size).toBe(3)
    const [answer] = textOf(texts, 'answer')
    expect(answer).toMatch(/writer.*A slogan for a bakery.*only this one.*every word.*strongest word/u)
  })

  test('research-team: the researcher repeats its question, and the writer uses both notes', async () => {
    const texts = await said('research-team', 'water mills')
    const found = textOf(texts, 'find')
    expect(found).toHaveLength(2)
    expect(found[0]).toMatch(/researcher.*water mills.*Where does it come from\?/u)
    expect(found[1]).toMatch(/researcher.*water mills.*What is it good for today\?/u)
    const [answer] = textOf(texts, 'write/main/write')
      .concat(textOf(texts, 'write'))
      .filter((text) => text.includes('writer'))
    expect(answer).toMatch(/Where does it come from\?[^]*What is it good for today\?/u)
  })
})
