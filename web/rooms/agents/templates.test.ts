import { describe, expect, test } from 'vitest'
import { parsePipeline } from '../../../src/pipeline/parse.ts'
import { idFor, templates } from './templates.ts'

describe('templates of new agents', () => {
  test.each(templates)('$id loads, with any name and model', ({ text }) => {
    const { metadata, workflow } = parsePipeline(text('A "quoted": name # 1', 'openai:gpt-5'))
    expect(metadata.name).toBe('A "quoted": name # 1')
    const models = workflow.map((step) => (step.type === 'llm' ? step.config.model : undefined))
    expect(models).toEqual(workflow.map(() => 'openai:gpt-5'))
    // Without it a new agent would have no answer.
    expect(workflow.at(-1)).toMatchObject({ type: 'llm', config: { stream: true } })
  })

  test('a name becomes an id that a file may have', () => {
    expect(['Research team', '  Für Ünser Büro! ', '---', 'a/../b', '東京'].map(idFor)).toEqual([
      'research-team',
      'fur-unser-buro',
      '',
      'a-b',
      '東京',
    ])
  })
})
