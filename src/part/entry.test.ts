import { expect, test } from 'vitest'
import { toModelPart, toRecorded } from './entry.ts'
import type { ModelPart } from './part.ts'

test('what a model says survives its recording, dates included', () => {
  const timestamp = new Date(1705584896150)
  const parts: ModelPart[] = [
    { type: 'response-metadata', id: 'r', modelId: 'm', timestamp },
    { type: 'response-metadata', modelId: 'm' },
    { type: 'text-delta', id: '1', delta: 'Hi' },
  ]
  expect(toRecorded(parts[0]!)).toMatchObject({ responseTimestamp: 1705584896150 })
  expect(parts.map((part) => toModelPart(JSON.parse(JSON.stringify(toRecorded(part)))))).toEqual(parts)
})
