/** A client runs what has stopped, so a call stops only when it is handed over. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { MessagesEvent } from './message-blocks.ts'
import { toMessageUsage } from './messages-answer.ts'
import { messagesWire } from './messages.ts'

const recorded = readFileSync(new URL('../golden/client-tools.ndjson', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Entry)

function events(entries: readonly Entry[]): MessagesEvent[] {
  const encoder = messagesWire.createEncoder()
  const body = entries.map((entry) => encoder.encode(entry)).join('')
  return [...body.matchAll(/^data: (\{.*\})$/gmu)].map(([, json]) => JSON.parse(json!) as MessagesEvent)
}

/** The calls that have stopped. */
function stoppedCalls(all: readonly MessagesEvent[]): string[] {
  const ids = new Map<unknown, string>()
  for (const { type, index, content_block: block } of all) {
    const { type: kind, id } = (block ?? {}) as { type?: string; id?: string }
    if (type === 'content_block_start' && kind === 'tool_use') ids.set(index, id!)
  }
  return all.flatMap(({ type, index }) => (type === 'content_block_stop' && ids.has(index) ? [ids.get(index)!] : []))
}

describe('calls for the client', () => {
  test('handed over: each stops once', () => {
    const all = events(recorded)
    expect(stoppedCalls(all)).toEqual(['call_a', 'call_b', 'call_c'])
    expect(all.at(-2)).toMatchObject({ type: 'message_delta', delta: { stop_reason: 'tool_use' } })
  })

  test('before it is handed over, a call is there and has not stopped', () => {
    const at = recorded.findIndex(({ type }) => type === 'tool-result')
    const all = events(recorded.slice(0, at))
    expect(all.map(({ type }) => type)).toContain('content_block_start')
    expect(JSON.stringify(all)).toContain('input_json_delta')
    expect(stoppedCalls(all)).toEqual([])
  })

  test.each(['denied', 'unavailable', 'aborted', undefined] as const)(
    'with the outcome %s: never stopped, and the message fails',
    (outcome) => {
      const all = events(
        recorded.map((entry): Entry => {
          if (entry.type !== 'tool-result' || entry.toolCallId !== 'call_b') return entry
          const { outcome: _, ...rest } = entry
          return outcome === undefined ? rest : { ...rest, outcome }
        }),
      )
      expect(stoppedCalls(all)).not.toContain('call_b')
      expect(all.at(-1)).toMatchObject({
        type: 'error',
        error: { type: 'run_failed', message: expect.stringContaining('must not be run') },
      })
    },
  )

  test('arguments that are no object are never handed over', () => {
    const all = events(
      recorded.map((entry) =>
        entry.type === 'tool-call' && entry.toolCallId === 'call_c' ? { ...entry, input: '[1]' } : entry,
      ),
    )
    expect(stoppedCalls(all)).not.toContain('call_c')
    expect(all.at(-1)!.type).toBe('error')
  })

  test('an attempt that was lost while a call was open: the message fails, and clients may ask again', () => {
    const at = recorded.findIndex(({ type }) => type === 'tool-input-delta') + 1
    const { step, timestamp } = recorded[at]!
    const reset = { type: 'step-reset', seq: at + 1, step, timestamp, attempt: 2 } as Entry
    const all = events([...recorded.slice(0, at), reset])
    expect(stoppedCalls(all)).toEqual([])
    expect(all.at(-1)).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } })
  })

  test('an attempt that was lost before any call: its text stops, and the next one goes on', () => {
    const at = recorded.findIndex(({ type }) => type === 'text-delta') + 1
    const { step, timestamp } = recorded[at]!
    const reset = { type: 'step-reset', seq: at + 1, step, timestamp, attempt: 2 } as Entry
    expect(events([...recorded.slice(0, at), reset]).at(-1)!.type).toBe('content_block_stop')
  })
})

describe('usage', () => {
  test('tokens of the cache are counted by themselves; what is not known is 0', () => {
    const usage = { source: 'reported' as const, inputTokens: 100, outputTokens: 7, cachedInputTokens: 60 }
    expect(toMessageUsage({ ...usage, cacheWriteInputTokens: 30 })).toEqual({
      input_tokens: 10,
      output_tokens: 7,
      cache_read_input_tokens: 60,
      cache_creation_input_tokens: 30,
    })
    expect(toMessageUsage(undefined)).toEqual({
      input_tokens: 0,
      output_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
    })
  })
})
