import { expect, test } from 'vitest'
import type { StepSettings } from '../../../src/part/agent-settings.ts'
import { changedWords, withSettings } from './override.ts'

const file: StepSettings = {
  path: 'main/answer',
  type: 'llm',
  model: 'm:1',
  system: 'Be brief.',
  tools: [{ name: 'a', kind: 'server' }],
}
const step = 'main/answer'

test('a change is added to those of its step; what the file says is none', () => {
  let changes = withSettings([], file, { model: 'm:2' })
  expect(changes).toEqual([{ step, model: 'm:2' }])
  changes = withSettings(changes, file, { temperature: 0, tools: { a: false } })
  changes = withSettings(changes, file, { tools: { b: true }, system: null })
  expect(changes).toEqual([{ step, model: 'm:2', temperature: 0, system: null, tools: { a: false, b: true } }])
  expect(changedWords(changes)).toBe('model, temperature, prompt, tools')
  const other = { ...file, path: 'main/plan' }
  expect(withSettings(changes, other, { model: null })).toEqual([...changes, { step: 'main/plan', model: null }])
  changes = withSettings(changes, file, { model: 'm:1', temperature: null, tools: { a: true } })
  expect(changes).toEqual([{ step, system: null, tools: { b: true } }])
  expect(withSettings(changes, file, { system: 'Be brief.', tools: { b: false } })).toEqual([])
  expect(changedWords([])).toBe('')
})
