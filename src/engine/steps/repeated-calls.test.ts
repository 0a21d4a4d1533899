import { describe, expect, test } from 'vitest'
import type { ModelToolCall, ModelReply } from '../../fold/reply-messages.ts'
import { sameCall } from './router.ts'

function call(
  toolName: string,
  input: string,
  result: Partial<NonNullable<ModelToolCall['result']>> | null = {},
): ModelToolCall {
  const entry = { seq: 1, timestamp: 0, step: 's', type: 'tool-result', toolCallId: 'c', toolName, result: 1 } as const
  return {
    toolCallId: 'c',
    toolName,
    input,
    providerExecuted: false,
    ...(result === null ? undefined : { result: { ...entry, isError: false, ...result } }),
  }
}
const reply = (...calls: ModelToolCall[]): ModelReply => ({ path: 's', content: [], calls, closed: true })

describe('sameCall', () => {
  test.each([
    ['the same text', '{"a":1}', true],
    ['keys in another order', '{ "b": [1, {"y": 2, "x": 1}], "a": 1 }', true],
    ['another value', '{"a":"1"}', false],
    ['no JSON', '{"a":', false],
    ['a prototype name', '{"__proto__":{"a":1}}', false],
  ])('%s', (_, input, isSame) => {
    const before = reply(call('t', '{"a":1}'), call('t', '{"a":1,"b":[1,{"x":1,"y":2}]}'))
    expect(sameCall(call('t', input), [before]) !== undefined).toBe(isSame)
  })

  test('ignores calls of other tools, failed calls, and calls without a result', () => {
    const others = [call('u', '{}'), call('t', '{}', { isError: true }), call('t', '{}', { outcome: 'denied' })]
    const waiting = call('t', '{}', null)
    const list = [reply(...others, waiting)]
    expect(sameCall(call('t', '{}'), list)).toBeUndefined()
    waiting.result = call('t', '{}').result!
    expect(sameCall(call('t', '{}'), list)).toBe(waiting)
  })

  test('looking up 20,000 calls among 20,000 takes seconds at most', () => {
    const calls = () => Array.from({ length: 20_000 }, (_, i) => call('t', `{"n":${i}}`))
    const before = [reply(...calls())]
    expect(calls().every((each) => sameCall(each, before) !== undefined)).toBe(true)
  })
})
