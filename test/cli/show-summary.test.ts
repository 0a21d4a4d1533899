/** What `millrace run`, `show`, `check` and `GET /api/runs/<id>` say of a summary. */
import { expect, onTestFinished, test } from 'vitest'
import type { RunView } from '../../src/fold/run-view.ts'
import { folder, ran, serving } from '../support/cli.ts'
import { startStrictServer } from '../support/strict-model-server.ts'
import { isSummary, pageText, readPages } from '../support/window-kills.ts'

const yaml = (context: string) => `workflow:
  - id: answer
    type: llm
    config: { model: "box:m", stream: true, maxSteps: 50, tools: [read, useSkill], context: ${context} }
`
const config = (baseURL: string) => `
const pages = ${JSON.stringify(Array.from({ length: 20 }, (_, i) => pageText(i + 1)))}
const parameters = { type: 'object', properties: { page: { type: 'integer' } } }
export default {
  models: { endpoints: [{ name: 'box', baseURL: '${baseURL}', protocol: 'anthropic' }] },
  tools: {
    read: { parameters, execute: ({ page }) => pages[page - 1] },
    useSkill: { parameters: { type: 'object' }, execute: () => 'One after the other.' },
  },
}`

test('it is a row between the steps, a step of its own, and a part of the view', async () => {
  const model = await startStrictServer({ window: 16_000, answer: (asked) => readPages(asked, 12) })
  onTestFinished(() => model.close())
  const cwd = folder({
    'agents/a.yaml': yaml('{ window: 16k, keep: 4k }'),
    'agents/millrace.config.mjs': config(model.baseURL),
  })
  const run = await ran(['run', 'a', '-m', 'Count the pages'], { cwd })
  expect([run.code, run.out]).toEqual([0, expect.stringContaining('12 pages.')])
  expect(run.out).not.toContain('heron')
  expect(run.err).toMatch(/≡ \d+ messages in fewer words: about [\d,]+ → [\d,]+ tokens; the window was nearly full/u)
  const made = model.requests.filter(isSummary).length
  expect(made).toBeGreaterThan(0)
  const [{ id }] = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as [{ id: string }]
  const { out } = await ran(['show', id], { cwd })
  const steps = out.slice(out.indexOf('Steps'), out.indexOf('Models'))
  expect(steps.match(/≡ \d+ messages in fewer words/gu)).toHaveLength(made)
  expect(steps).toContain('summary')
  // As a test case it is answered from its recording, the summary too.
  const before = model.requests.length
  const added = await ran(['test', '--add', id], { cwd })
  expect([added.code, added.out + added.err]).toEqual([0, expect.stringContaining('1 passed')])
  expect(model.requests).toHaveLength(before)
  const server = await serving([], { cwd })
  const view = (await (await fetch(`${server.url}/api/runs/${id}`)).json()) as RunView
  expect(view.summaries).toMatchObject([
    { step: 'main/answer', reason: 'full', text: expect.stringContaining('heron'), upTo: expect.any(Number) },
  ])
  expect(view.steps.filter(({ kind }) => kind === 'summary')).toHaveLength(made)
})

test('check warns of a share of a window that nobody knows, and refuses a window that is too small', async () => {
  const files = { 'agents/millrace.config.mjs': config('http://127.0.0.1:1/v1') }
  const unknown = await ran(['check'], { cwd: folder({ ...files, 'agents/a.yaml': yaml('{ summarizeAt: 50% }') }) })
  expect([unknown.code, unknown.out + unknown.err]).toEqual([0, expect.stringContaining('a.yaml:4 warning:')])
  expect(unknown.out + unknown.err).toContain('the window of the model is not known')
  const small = await ran(['check'], { cwd: folder({ ...files, 'agents/a.yaml': yaml('{ window: 4k, keep: 5k }') }) })
  expect([small.code, small.out + small.err]).toEqual([1, expect.stringContaining('"keep" must be smaller')])
})
