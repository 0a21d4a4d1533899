import { describe, expect, test } from 'vitest'
import { formatRequests } from './requests.ts'

describe('formatRequests', () => {
  test('a request without a tool call shows its question', () => {
    const envelope = { seq: 1, timestamp: 0, step: 'main/a', type: 'request', deadline: 0 } as const
    const table = formatRequests('r', [
      { ...envelope, requestId: 'r.1', kind: 'tool', toolCallId: 'c', toolName: 'look', input: { a: 1 } },
      { ...envelope, requestId: 'r.2', kind: 'input', message: 'Which city?' },
      { ...envelope, requestId: 'r.3', kind: 'input' },
    ])
    expect(table.split('\n').slice(1)).toEqual([
      expect.stringMatching(/^1 +result +look .*\{"a":1\}$/u),
      expect.stringMatching(/^2 +value .*Which city\?$/u),
      expect.stringMatching(/^3 +value .*a value$/u),
    ])
  })
})
