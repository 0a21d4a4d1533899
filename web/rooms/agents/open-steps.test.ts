import { expect, test } from 'vitest'
import type { Entry } from '../../../src/part/entry.ts'
import { createOpenSteps } from './open-steps.ts'

test('steps are open from their start to their end, with those around them', () => {
  const open = createOpenSteps()
  const apply = (type: string, step: string) => open.apply({ type, step, seq: 1, timestamp: 1 } as Entry)
  apply('step-start', 'main/rounds')
  apply('step-start', 'main/rounds/2/judge')
  expect([...open.ids()]).toEqual(['rounds', '2', 'judge'])
  apply('step-finish', 'main/rounds/2/judge')
  expect([...open.ids()]).toEqual(['rounds'])
  apply('run-end', '')
  expect(open.ids().size).toBe(0)
})
