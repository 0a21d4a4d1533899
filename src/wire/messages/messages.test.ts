/** Properties over random runs: the order of events, both forms of a message, and what the official client makes of it. */
import type Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anthropicClient } from '../../../test/anthropic-client.ts'
import { answeredIn } from '../../../test/answered-blocks.ts'
import { arbitraryCompletedRun, arbitraryRun } from '../../../test/arbitrary-run.ts'
import { often } from '../../../test/support/thorough.ts'
import { callOf, hear } from '../../models/decode/testing/play.ts'
import type { Entry } from '../../part/entry.ts'
import { lastResume, wireContract } from '../wire.contract.ts'
import type { WireContext } from '../wire.ts'
import type { MessagesEvent } from './message-blocks.ts'
import { emptyAnswer, type MessagesOptions } from './messages-answer.ts'
import { messagesJsonWire, type MessageObject } from './messages-json.ts'
import { messagesWire } from './messages.ts'

const runs = fc.oneof(arbitraryRun, arbitraryCompletedRun)
const asked: fc.Arbitrary<MessagesOptions> = fc.record(
  {
    serverTools: fc.constantFrom('shown', 'hidden'),
    toolOutputMaxChars: fc.constantFrom(8000, 10),
    reasoning: fc.constant('sealed'),
    thinking: fc.constantFrom('shown', 'omitted', 'hidden'),
  },
  { requiredKeys: ['serverTools', 'toolOutputMaxChars', 'thinking'] },
)

function sent(entries: readonly Entry[], context: WireContext = {}, options: Partial<MessagesOptions> = {}): string {
  const encoder = messagesWire.createEncoder(context, options)
  return entries.map((entry) => encoder.encode(entry)).join('')
}

function eventsOf(body: string): MessagesEvent[] {
  return body
    .split('\n\n')
    .slice(0, -1)
    .map((frame) => {
      const [name, data, ...more] = frame.split('\n')
      const event = JSON.parse(data!.slice('data: '.length)) as MessagesEvent
      expect([name, more]).toEqual([`event: ${event.type}`, []])
      return event
    })
}

interface Block {
  type: string
  id?: string
  tool_use_id?: string
  text?: string
}

/** A start, whole blocks one after the other without gaps, and one end. Returns the error, if there is one. */
function checkOrder(events: readonly MessagesEvent[]): { type: string } | undefined {
  expect(events[0]?.type).toBe('message_start')
  let open: { block: Block; text: string } | undefined
  let index = 0
  const waiting = new Set<string>()
  const last = events.at(-1)!
  const isFailed = last.type === 'error'
  const inside = events.slice(1, isFailed ? -1 : -2)
  for (const { type, ...fields } of inside) {
    expect(fields['index']).toBe(index)
    if (type === 'content_block_start') {
      expect(open).toBeUndefined()
      open = { block: fields['content_block'] as Block, text: '' }
      const { type: kind, id, tool_use_id: of } = open.block
      if (kind === 'mcp_tool_use') waiting.add(id!)
      // A result stands behind its call.
      if (kind === 'mcp_tool_result') expect(waiting.delete(of!)).toBe(true)
      if (kind === 'tool_use') expect(id).toMatch(/^[\w-]+$/u)
    } else if (type === 'content_block_delta') {
      const { type: kind, ...delta } = fields['delta'] as Record<string, string>
      const own = { text: 'text_delta', tool_use: 'input_json_delta' }[open!.block.type]
      if (own !== undefined) expect(kind).toBe(own)
      else
        expect([open!.block.type, kind]).toEqual(['thinking', expect.stringMatching(/^(?:thinking|signature)_delta$/u)])
      open!.text += Object.values(delta).join('')
    } else {
      expect(type).toBe('content_block_stop')
      const { block, text } = open!
      if (block.type === 'text' || block.type === 'thinking') expect(text).not.toBe('')
      if (block.type === 'tool_use') expect(JSON.parse(text)).toBeTypeOf('object')
      open = undefined
      index++
    }
  }
  if (isFailed) {
    // A call that was not handed over never stops.
    if (open !== undefined) expect(open.block.type).toBe('tool_use')
    return last['error'] as { type: string }
  }
  expect(open).toBeUndefined()
  expect(index).toBeGreaterThan(0)
  expect(events.slice(-2).map(({ type }) => type)).toEqual(['message_delta', 'message_stop'])
  return undefined
}

describe('Messages wire', () => {
  wireContract(messagesWire, {
    runs,
    options: asked,
    judge({ body }) {
      checkOrder(eventsOf(body))
    },
  })

  wireContract(messagesJsonWire, { runs, options: asked, numRuns: 50 })

  test('@anthropic-ai/sdk: its stream helper builds the JSON, and knows every event', async () => {
    const check = async (entries: Entry[], options: MessagesOptions, resumed: boolean) => {
      const context = resumed ? { resumedAt: lastResume(entries) } : {}
      const encoder = messagesJsonWire.createEncoder(context, options)
      const [result, ...more] = entries.flatMap((entry) => encoder.encode(entry))
      expect(more).toEqual([])
      const body = sent(entries, context, options)
      const events: Anthropic.MessageStreamEvent[] = []
      const stream = anthropicClient(body).messages.stream({ model: 'm', max_tokens: 9, messages: [] })
      stream.on('streamEvent', (event) => void events.push(event))
      if ('error' in result!) {
        await expect(stream.finalMessage()).rejects.toThrow(result.error.type)
        return
      }
      const message = await stream.finalMessage()
      expect(plain(message)).toEqual(plain(result!.message))
      expect(events.map(({ type }) => type)).toEqual(eventsOf(body).map(({ type }) => type))
    }
    await fc.assert(fc.asyncProperty(runs, asked, fc.boolean(), check), { numRuns: often(100, 3) })
  })

  test('encode, then decode: the texts, thoughts, calls and tools of the answer', () => {
    let compared = 0
    const check = (entries: Entry[]) => {
      const body = sent(entries, {}, { reasoning: 'sealed' })
      const events = eventsOf(body)
      if (events.at(-1)!.type === 'error') return
      const encoder = messagesJsonWire.createEncoder({}, { reasoning: 'sealed' })
      const [result] = entries.flatMap((entry) => encoder.encode(entry))
      const { message } = result as { message: MessageObject }
      const { answered, isWhole } = answeredIn(entries)
      if (!isWhole) return
      compared++
      const heard = hear('anthropic', [new TextEncoder().encode(body)], callOf([]))
      const said = (type: 'text-delta' | 'reasoning-delta') => {
        const blocks = new Map<string, string>()
        for (const part of heard) if (part.type === type) blocks.set(part.id, (blocks.get(part.id) ?? '') + part.delta)
        return [...blocks.values()].filter((each) => each !== '' && each !== emptyAnswer).toSorted()
      }
      expect(said('text-delta')).toEqual(answered('text-delta'))
      expect(said('reasoning-delta')).toEqual(answered('reasoning-delta'))
      const calls = heard.flatMap((part) =>
        part.type === 'tool-call' ? [[part.providerExecuted === true, part.toolName, JSON.parse(part.input)]] : [],
      )
      const own = message.content.flatMap((block) =>
        /^(?:mcp_)?tool_use$/u.test(block.type) ? [[block.type === 'mcp_tool_use', block['name'], block['input']]] : [],
      )
      expect(calls).toEqual(own)
      const results = heard.flatMap((part) => (part.type === 'tool-result' ? [part.result] : []))
      expect(results).toEqual(
        message.content.flatMap((block) => (block.type === 'mcp_tool_result' ? [block['content']] : [])),
      )
      const reasons = { end_turn: 'stop', tool_use: 'tool-calls', max_tokens: 'length', refusal: 'content-filter' }
      expect(heard.find(({ type }) => type === 'finish')).toMatchObject({
        finishReason: { unified: reasons[message.stop_reason as keyof typeof reasons] },
      })
    }
    fc.assert(fc.property(arbitraryCompletedRun, check), { numRuns: often(200, 3) })
    expect(compared).toBeGreaterThan(3)
  })

  test('a block that begins while another is open waits, and nothing of it is lost', () => {
    const body = sent(parallel())
    const texts = eventsOf(body).flatMap(({ type, index, delta }) =>
      type === 'content_block_delta' ? [[index, (delta as { text: string }).text]] : [],
    )
    expect(texts).toEqual([
      [0, 'a1'],
      [0, 'a2'],
      [1, 'b1b2'],
    ])
    checkOrder(eventsOf(body))
  })
})

function plain(message: object): object {
  return JSON.parse(JSON.stringify({ ...message, parsed_output: undefined })) as object
}

/** Two branches whose texts come at the same time. */
function parallel(): Entry[] {
  const step = (path: string) => ({
    step: path,
    stepType: 'llm',
    attempt: 1,
    answer: true as const,
    type: 'step-start' as const,
  })
  const parts = [
    {
      type: 'run-start',
      runId: 'run_1',
      agent: 'a',
      pipeline: '',
      threadId: 't',
      protocol: 'messages',
      input: {},
      step: '',
    },
    step('main/x'),
    step('main/y'),
    { type: 'text-start', id: 'a', step: 'main/x' },
    { type: 'text-delta', id: 'a', delta: 'a1', step: 'main/x' },
    { type: 'text-start', id: 'b', step: 'main/y' },
    { type: 'text-delta', id: 'b', delta: 'b1', step: 'main/y' },
    { type: 'text-delta', id: 'a', delta: 'a2', step: 'main/x' },
    { type: 'text-delta', id: 'b', delta: 'b2', step: 'main/y' },
    { type: 'text-end', id: 'b', step: 'main/y' },
    { type: 'text-end', id: 'a', step: 'main/x' },
    { type: 'answer-end', finishReason: 'stop', usage: { source: 'reported' }, step: '' },
  ]
  return parts.map((part, i) => ({ seq: i + 1, timestamp: 1, ...part }) as unknown as Entry)
}
