import { describe, expect, test } from 'vitest'
import type { Entry, RecordedPart } from '../part/entry.ts'
import { replyMessages } from './reply-messages.ts'
import { createToolLoop } from './tool-loop.ts'

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
}
const end: RecordedPart = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage }
const begin: RecordedPart = { type: 'step-start', stepType: 'model-call', attempt: 1 }
const search = { toolCallId: 'srv', toolName: 'search' }
const first: [string, RecordedPart][] = [
  ['main/a/1', begin],
  ['main/a/1', { type: 'tool-call', ...search, input: '{}', providerExecuted: true }],
  ['main/a/1', end],
]

function fold(said: [string, RecordedPart][]) {
  const loop = createToolLoop('main/a')
  said.forEach(([step, part], i) => loop.apply({ seq: i + 1, timestamp: 0, step, ...part } as Entry))
  return replyMessages(loop.list)
}
const call = { type: 'tool-call', ...search, input: {}, providerExecuted: true }
const result = { type: 'tool-result', ...search, output: { type: 'text', value: 'found' } }

describe('createToolLoop', () => {
  test('a call that the provider runs itself is told to it without a result, until a later answer brings that', () => {
    expect(fold(first)).toEqual([{ role: 'assistant', content: [call] }])
    const later: [string, RecordedPart][] = [
      ['main/a/2', begin],
      ['main/a/2', { type: 'tool-result', ...search, result: 'found' }],
      ['main/a/2', end],
    ]
    expect(fold([...first, ...later])).toEqual([
      { role: 'assistant', content: [call] },
      { role: 'assistant', content: [result] },
    ])
  })

  test('a result that an answer brought outlives the crash that made the answer void', () => {
    const cut: [string, RecordedPart][] = [
      ['main/a/2', begin],
      ['main/a/2', { type: 'tool-result', ...search, result: 'found' }],
      ['main/a/2', { type: 'step-reset', attempt: 1 }],
    ]
    expect(fold([...first, ...cut])).toEqual([{ role: 'assistant', content: [call, result] }])
  })

  test('a call of an answer that was cut off is not told at all', () => {
    expect(fold(first.slice(0, 2))).toEqual([])
  })
})
