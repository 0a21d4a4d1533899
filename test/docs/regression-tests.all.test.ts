/** The test cases in the documents run, and the editor's schema knows them. */
import { execFileSync } from 'node:child_process'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { finish, text, toolCall, createScriptedModel } from '../../src/models/scripted.ts'
import { validate } from '../../src/pipeline/json-schema/validate.ts'
import { caseJsonSchema } from '../../src/regress/case-json-schema.ts'
import { labOf } from '../regress/lab.ts'
import { folder, ran } from '../support/cli.ts'
import { snippetsIn } from './documents.ts'

const [first, shop, ...more] = snippetsIn('yaml').filter(({ text }) => /^cases:/mu.test(text))

describe('docs: regression tests', () => {
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

  test('the batch of its page runs as it is pasted', async () => {
    const { text } = snippetsIn('sh').find(({ place }) => place.startsWith('docs/batches.md'))!
    const [write, run] = text.trim().split('\n') as [string, string]
    const cwd = folder()
    cpSync('agents/assistant.yaml', join(cwd, 'agents/assistant.yaml'))
    execFileSync('bash', ['-c', write], { cwd })
    const { code } = await ran(run.split(' ').slice(1), { cwd })
    expect(code).toBe(0)
    const results = readFileSync(join(cwd, 'results.jsonl'), 'utf8')
    expect([results.trim().split('\n').length, results]).toEqual([
      2,
      expect.stringMatching(/= 5\b[^]*= 20\b|= 20\b[^]*= 5\b/u),
    ])
  })
})
