import { describe, expect, test } from 'vitest'
import { lengthOf } from './model-feed.ts'

describe('model context', () => {
  test('a part counts the characters of its texts and one for itself, without its type', () => {
    const none = new Set<string>()
    expect(lengthOf({ type: 'text-start', id: 'abc' }, none)).toBe(4)
    const call = { type: 'tool-call', toolCallId: 'id', toolName: 'name', input: '{}' } as const
    expect(lengthOf(call, none)).toBe(9)
    expect(lengthOf(call, new Set(['id']))).toBe(1)
    expect(lengthOf({ type: 'stream-start', warnings: [] }, none)).toBe(1)
  })
})
