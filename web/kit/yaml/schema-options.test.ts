import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { optionsAt, type Schema } from './schema-options.ts'
import { yamlPlace } from './yaml-place.ts'

const schema = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../../agents/millrace.schema.json', import.meta.url)), 'utf8'),
) as Schema

/** What is offered at `^`. */
function offered(text: string): string[] {
  const position = text.indexOf('^')
  const place = yamlPlace(text.replace('^', ''), position)
  return place === undefined ? [] : optionsAt(schema, place).map(({ label }) => label)
}

describe('keys', () => {
  test('at the top, without those that are there', () => {
    const keys = offered('metadata:\n  name: x\n^\nworkflow: []\n')
    expect(keys).toEqual(expect.arrayContaining(['after', 'budget', 'onDisconnect']))
    expect(keys).not.toContain('metadata')
    expect(keys).not.toContain('workflow')
  })
  test('of a mapping', () => {
    expect(offered('metadata:\n  ver^')).toEqual(expect.arrayContaining(['name', 'version', 'aliases']))
  })
  test('of a step, by its dash and below it', () => {
    const step = ['id', 'type', 'config', 'result']
    expect(offered('workflow:\n  - ^')).toEqual(expect.arrayContaining(step))
    expect(offered('workflow:\n- ^')).toEqual(expect.arrayContaining(step))
    const below = offered('workflow:\n  - id: a\n    ^\n    result: b\n  - id: c\n    type: llm\n')
    expect(below).toEqual(expect.arrayContaining(['type', 'config', 'budget']))
    expect(below).not.toContain('id')
    expect(below).not.toContain('result')
  })
  test('of a config, by the type of the step', () => {
    const llm = offered('workflow:\n  - id: a\n    type: llm\n    config:\n      model: x\n      ^')
    expect(llm).toEqual(expect.arrayContaining(['messages', 'system', 'tools', 'stream']))
    expect(llm).not.toContain('model')
    expect(llm).not.toContain('branches')
    expect(offered('workflow:\n  - config:\n      ^\n    type: loop\n')).toEqual(
      expect.arrayContaining(['while', 'over', 'max', 'steps']),
    )
    expect(offered('workflow:\n  - config:\n      ^\n')).toEqual([])
  })
  test('of steps inside of steps', () => {
    const text = `workflow:
  - id: a
    type: parallel
    config:
      branches:
        one:
          - id: b
            type: condition
            config:
              then:
                - id: c
                  type: memory
                  config:
                    ^`
    expect(offered(text)).toEqual(expect.arrayContaining(['action', 'limit']))
    // The list of the branch, not that of `then`.
    expect(offered(`${text.slice(0, text.indexOf('              then'))}              i^`)).toEqual(
      expect.arrayContaining(['if', 'then', 'else']),
    )
  })
})

describe('values', () => {
  test.each([
    ['workflow:\n  - type: l^', ['llm', 'loop']],
    ['workflow:\n  - id: a\n    type: llm\n    config:\n      stream: ^', ['true', 'false']],
    ['onDisconnect: ^', ['cancel', 'detach']],
    ['workflow:\n  - id: a\n    type: parallel\n    config:\n      order: ^', ['declared', 'live']],
  ])('%s', (text, words) => expect(offered(text)).toEqual(expect.arrayContaining(words)))
})

describe('nothing', () => {
  test.each([
    '# a comment ^',
    'metadata:\n  name: two words^',
    'workflow: [{ id: a, ^',
    'workflow:\n  - id: a\n    type: llm\n    config:\n      system: |\n        be k^',
    'constructor:\n  ^',
    'metadata:\n  constructor: ^',
  ])('%s', (text) => expect(offered(text)).toEqual([]))
})
