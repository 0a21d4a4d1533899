import { describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import type { Message } from '../part/message.ts'
import type { ModelPart } from '../part/model-part.ts'
import { parentPath } from '../part/path.ts'
import { replyMessages } from './reply-messages.ts'
import { createToolLoop } from './tool-loop.ts'
import { createCallIds, toProvider } from './call-ids.ts'

const call = (toolCallId: string): ModelPart => ({ type: 'tool-call', toolCallId, toolName: 't', input: '{}' })

/** What a run says in which step, and how its log names the calls. */
function say(...said: [step: string, part: ModelPart][]) {
  const ids = createCallIds()
  const entries: Entry[] = []
  for (const [step, part] of said) {
    const entry = { seq: entries.length + 1, timestamp: 0, step, ...ids.toLog(parentPath(step), part) } as Entry
    ids.apply(entry)
    entries.push(entry)
  }
  return { ids, entries, names: entries.map((entry) => ('toolCallId' in entry ? entry.toolCallId : '')) }
}

describe('call ids of a thread', () => {
  test('ids stay the provider’s within a step; where another step has used one, the call gets its own', () => {
    const { names, entries } = say(
      ['main/a/1', call('c')],
      ['main/a/2', call('c')],
      ['main/b/1', call('c')],
      ['main/b/2', call('c')],
      ['main/c/1', call('c')],
      ['main/b/3', call('c-2')],
    )
    expect(names).toEqual(['c', 'c', 'c-2', 'c-2', 'c-3', 'c-2-2'])
    expect(entries[0]).not.toHaveProperty('providerCallId')
    expect(entries.slice(2)).toMatchObject(['c', 'c', 'c', 'c-2'].map((providerCallId) => ({ providerCallId })))
  })

  test('all parts of a call have its name, and behind a crash as well', () => {
    const { ids, entries } = say(
      ['main/a/1', call('c')],
      ['main/b/1', { type: 'tool-input-start', id: 'c', toolName: 't' }],
      ['main/b/1', { type: 'tool-input-delta', id: 'c', delta: '{}' }],
      ['main/b/1', { type: 'tool-input-end', id: 'c' }],
      ['main/b/1', call('c')],
      ['main/b/1', { type: 'tool-result', toolCallId: 'c', toolName: 't', result: 1 }],
      ['main/b/1', { type: 'tool-approval-request', approvalId: 'x', toolCallId: 'c' }],
    )
    expect(entries.slice(1).map((each) => ('id' in each ? each.id : 'toolCallId' in each && each.toolCallId))).toEqual(
      Array(6).fill('c-2'),
    )
    const again = createCallIds()
    for (const entry of entries) again.apply(entry)
    for (const root of ['main/a', 'main/b', 'main/d']) {
      expect(again.toLog(root, call('c'))).toEqual(ids.toLog(root, call('c')))
    }
  })

  test('a provider is told its own ids, unless its conversation holds them for another call', () => {
    const { entries } = say(['main/a/1', call('c')], ['main/b/1', call('c')])
    const loop = createToolLoop('main/b')
    const at = { timestamp: 0, step: 'main/b/1' }
    const result = { type: 'tool-result', toolCallId: 'c-2', toolName: 't', result: 'r' } as const
    const start = { type: 'step-start', stepType: 'model-call', attempt: 1 } as const
    for (const part of [start, entries[1]!, result]) loop.apply({ seq: 1, ...at, ...part } as Entry)
    const idsIn = (messages: Message[]) =>
      [...JSON.stringify(messages).matchAll(/"toolCallId":"([^"]+)"/gu)].map(([, id]) => id)
    const own = replyMessages(loop.list)
    expect(idsIn(own)).toEqual(['c-2', 'c-2'])
    expect(idsIn(toProvider(own, loop))).toEqual(['c', 'c'])
    const before: Message = {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'c', toolName: 't', input: {} }],
    }
    expect(idsIn(toProvider([before, ...own], loop))).toEqual(['c', 'c-2', 'c-2'])
  })
})
