import { expect, test } from 'vitest'
import type { AgentFacts } from '../../../data/hooks.ts'
import { sharedForm } from './shared-form.ts'

const agent = (id: string, input?: Record<string, unknown>, more: Partial<AgentFacts> = {}): AgentFacts => ({
  id,
  steps: [],
  tools: [],
  ...(input && { input }),
  ...more,
})
const city = { type: 'object', required: ['city'], properties: { city: { type: 'string' } } }
const tone = { type: 'object', properties: { tone: { type: 'string' } } }

test('agents that take a message are asked with one', () => {
  expect(sharedForm([agent('a'), agent('b')])).toEqual({ schema: undefined, isMessageRequired: true })
  expect(sharedForm([])).toEqual({ schema: undefined, isMessageRequired: false })
})

test('the same fields are filled in once', () => {
  const form = sharedForm([agent('a', city), agent('b', { ...city, title: 'B' }, { messageRequired: true })])
  expect(form).toMatchObject({ schema: { required: ['city'] }, isMessageRequired: true })
  expect(form.fault).toBeUndefined()
})

test('other fields are left out where that is possible, and otherwise it is said', () => {
  expect(sharedForm([agent('a'), agent('b', tone)])).toEqual({ schema: undefined, isMessageRequired: true })
  expect(sharedForm([agent('a'), agent('trip', city, { name: 'Trip planner' })]).fault).toBe(
    'Trip planner needs fields that the others do not have: city. Choose agents with the same fields, or agents that take a message.',
  )
  expect(sharedForm([agent('a', tone), agent('b', city)]).fault).toContain('b needs')
})
