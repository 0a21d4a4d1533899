/** The test cases in the documents run, and the editor's schema knows them. */
import { readFileSync } from 'node:fs'
import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { finish, text, toolCall } from '../../src/models/script.ts'
import { createScriptedModel } from '../../src/models/scripted.ts'
import { validate } from '../../src/pipeline/json-schema/validate.ts'
import { caseJsonSchema } from '../../src/regress/case-json-schema.ts'
import { labOf } from '../regress/lab.ts'
import { snippetsIn } from './documents.ts'

const [first, shop, ...more] = snippetsIn('yaml').filter(({ text }) => /^cases:/mu.test(text))

test('the first case of the page is one of this repository', () => {
  expect(more).toEqual([])
  const lines = first!.text.split('\n').filter((line) => line.trim() !== '')
  const own = readFileSync('tests/assistant.yaml', 'utf8')
  for (const line of lines) expect(own).toContain(line)
})

test('the case with every expectation passes, recorded and played', async () => {
  const agent = `workflow:
  - id: answer
    type: llm
    result: said
    config:
      model: "demo:assistant"
      tools: [findMenu, { name: orderLunch, approval: true }]
  - id: check
    type: condition
    config: { if: '$said.text == ""', then: [{ id: apologise, type: output-generator, config: { template: sorry } }] }
return: { order: { items: [{ count: 2 }] }, text: $said.text }
`
  const critic = 'workflow: [{ id: score, type: output-generator, config: { template: { score: 0.9 } } }]'
  const lab = await labOf({
    agents: { shop: agent.replace('model:', 'stream: true\n      model:'), critic },
    cases: shop!.text,
    config: {
      pricing: { 'demo:assistant': { input: 1, output: 1 } },
      models: {
        providers: {
          demo: () =>
            createScriptedModel([
              [toolCall('findMenu', {}), finish('tool-calls', { in: 100, out: 10 })],
              [toolCall('orderLunch', { count: 2, dish: 'soup' }), finish('tool-calls', { in: 100, out: 10 })],
              [text('I ordered lunch, number 7.'), finish('stop', { in: 100, out: 10 })],
            ]),
        },
      },
      tools: {
        findMenu: { parameters: z.object({}), execute: () => ['soup'] },
        orderLunch: { parameters: z.object({ count: z.number(), dish: z.string() }), execute: () => 7 },
      },
    },
  })
  for (const record of [true, false]) {
    const [result] = await lab.run({ record })
    expect(result).toMatchObject({ status: 'passed', failures: [], warnings: [] })
  }
})

test('the schema for editors accepts these cases, and is the one beside those of this repository', () => {
  const schema = caseJsonSchema()
  expect(JSON.parse(readFileSync('tests/millrace-tests.schema.json', 'utf8'))).toEqual(schema)
  const own = readFileSync('tests/assistant.yaml', 'utf8')
  for (const each of [first!.text, shop!.text, own]) expect(validate(schema, load(each))).toEqual([])
  expect(validate(schema, { agent: 'a', cases: [{ name: 'x', expct: {} }] })).not.toEqual([])
})
