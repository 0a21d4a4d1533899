/** Properties over random runs: the order of events, both forms of a response, and what the official clients make of it. */
import fc from 'fast-check'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { arbitraryCompletedRun, arbitraryRun } from '../../../test/arbitrary-run.ts'
import { openaiClient } from '../../../test/openai-client.ts'
import { answeredIn } from '../../../test/answered-blocks.ts'
import { often } from '../../../test/support/thorough.ts'
import { callOf, hear } from '../../models/decode/testing/play.ts'
import type { Entry } from '../../part/entry.ts'
import { lastResume, wireContract } from '../wire.contract.ts'
import type { WireContext } from '../wire.ts'
import { perEntry, type ResponsesEvent } from './response-items.ts'
import type { ResponseItem, ResponseObject } from './response-object.ts'
import type { ResponsesOptions } from './responses-answer.ts'
import { responsesJsonWire } from './responses-json.ts'
import { responsesWire } from './responses.ts'

const runs = fc.oneof(arbitraryRun, arbitraryCompletedRun)
const asked: fc.Arbitrary<ResponsesOptions> = fc.record({
  serverTools: fc.constantFrom('shown', 'hidden'),
  toolOutputMaxChars: fc.constantFrom(8000, 10),
})

function sent(entries: readonly Entry[], context: WireContext = {}, options: Partial<ResponsesOptions> = {}): string {
  const encoder = responsesWire.createEncoder(context, options)
  return entries.map((entry) => encoder.encode(entry)).join('')
}

function eventsOf(body: string): ResponsesEvent[] {
  const frames = body.split('\n\n').slice(0, -1)
  expect(frames.at(-1)).toBe('data: [DONE]')
  return frames.slice(0, -1).map((frame) => {
    const [name, data, ...more] = frame.split('\n')
    const event = JSON.parse(data!.slice('data: '.length)) as ResponsesEvent
    expect([name, more]).toEqual([`event: ${event.type}`, []])
    return event
  })
}

interface Place {
  item_id: string
  output_index: number
  item: ResponseItem
  delta: string
}

const texts: Record<string, string> = {
  'response.output_text.delta': 'text',
  'response.refusal.delta': 'text',
  'response.reasoning_summary_text.delta': 'text',
  'response.function_call_arguments.delta': 'arguments',
  'response.custom_tool_call_input.delta': 'input',
}

/** Created first, one last event, each item added and done once, deltas only inside, indexes without gaps. */
function checkOrder(events: readonly ResponsesEvent[]): ResponseObject {
  const numbers = events.map(({ sequence_number }) => sequence_number)
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress'])
  const items: { added: ResponseItem; done?: ResponseItem; text: string }[] = []
  const ids = new Set<string>()
  for (const { type, ...fields } of events.slice(2, -1)) {
    expect(type).not.toMatch(/^response\.(?:created|in_progress|completed|incomplete|failed)$/u)
    const { output_index: index, item, item_id: id, delta } = fields as unknown as Place
    if (type === 'response.output_item.added') {
      expect(index).toBe(items.length)
      expect(ids.has(item.id)).toBe(false)
      ids.add(item.id)
      items.push({ added: item, text: '' })
      continue
    }
    const open = items[index]!
    expect(open.done).toBeUndefined()
    if (type === 'response.output_item.done') {
      expect([item.type, item.id]).toEqual([open.added.type, open.added.id])
      open.done = item
      continue
    }
    expect(id).toBe(open.added.id)
    if (texts[type] !== undefined) open.text += delta
  }
  const { type, response } = events.at(-1) as unknown as { type: string; response: ResponseObject }
  expect(`response.${response.status}`).toBe(type)
  for (const { added, done, text } of items) {
    if (done === undefined) {
      // A call that was not handed over: no client may run it.
      expect([response.status, added.type]).toEqual([
        response.status === 'completed' ? 'an open item' : response.status,
        'function_call',
      ])
    } else if (done.type === 'message') {
      const [part] = done.content
      expect(part?.type === 'refusal' ? part.refusal : part?.text).toBe(text)
    } else if (done.type === 'reasoning') expect(done.summary[0]?.text).toBe(text)
    else if (done.type === 'function_call') expect(done.arguments).toBe(text)
  }
  expect(response.output).toEqual(items.flatMap(({ done }) => done ?? []))
  return response
}

describe('Responses wire', () => {
  wireContract(responsesWire, {
    runs,
    options: asked,
    judge({ body }) {
      checkOrder(eventsOf(body))
    },
  })

  wireContract(responsesJsonWire, { runs, options: asked, numRuns: 50 })

  test('the JSON is the response of the last event', () => {
    const check = (entries: Entry[], options: ResponsesOptions, resumed: boolean) => {
      const context = resumed ? { resumedAt: lastResume(entries) } : {}
      const encoder = responsesJsonWire.createEncoder(context, options)
      const whole = entries.flatMap((entry) => encoder.encode(entry))
      expect(whole).toEqual([eventsOf(sent(entries, context, options)).at(-1)!['response']])
    }
    fc.assert(fc.property(runs, asked, fc.boolean(), check), { numRuns: often(100, 3) })
  })

  test('an answer that waits for approvals, and the one that begins behind it, have a legal order', () => {
    const seen = new Set<string>()
    const check = (given: Entry[], options: ResponsesOptions) => {
      const entries = given.map((entry): Entry => {
        if (entry.type !== 'run-start') return entry
        const wireOptions = { request: { approvals: [entry.agent] } }
        return { ...entry, handOver: true, protocol: 'responses', wireOptions }
      })
      const stop = entries.findIndex(({ type }) => type === 'suspend')
      if (stop < 0) return
      const { output, status } = checkOrder(eventsOf(sent(entries.slice(0, stop + 1), {}, options)))
      for (const { type } of output) seen.add(`${status} ${type}`)
      const from = lastResume(entries)
      if (from === 0) return
      const encoder = responsesWire.createEncoder({ resumedAt: from }, { ...options, from })
      const body = entries.map((entry) => (entry.seq < from ? (encoder.skip(entry), '') : encoder.encode(entry)))
      checkOrder(eventsOf(body.join('')))
    }
    fc.assert(fc.property(runs, asked, check), { numRuns: often(300, 3) })
    expect([...seen]).toEqual(expect.arrayContaining(['completed mcp_approval_request', 'completed message']))
  })

  test('events up to n, and those after n, are the whole, for every n', () => {
    const check = (entries: Entry[], options: ResponsesOptions) => {
      const whole = sent(entries, {}, options)
      const frames = whole.split(/(?<=\n\n)/u)
      const numbers = eventsOf(whole).map(({ sequence_number }) => sequence_number)
      for (const [i, after] of numbers.entries()) {
        const rest = sent(entries, {}, { ...options, after })
        if (frames.slice(0, i + 1).join('') + rest !== whole) expect(rest).toBe(frames.slice(i + 1).join(''))
      }
      // The number says which entry it is of, unless one entry has very many events.
      for (const number of numbers) expect(Math.floor(number / perEntry)).toBeLessThanOrEqual(entries.length)
    }
    fc.assert(fc.property(runs, asked, check), { numRuns: often(60, 3) })
  })

  test('openai: the stream helper builds the response of the last event, and knows every item', async () => {
    const check = async (entries: Entry[], options: ResponsesOptions) => {
      const body = sent(entries, {}, options)
      const { response } = eventsOf(body).at(-1) as unknown as { response: OpenAI.Responses.Response }
      const types: string[] = []
      const stream = openaiClient(body).responses.stream({ model: 'm', input: 'Hi' })
      stream.on('event', ({ type }) => void types.push(type))
      const final = await stream.finalResponse()
      expect(final.id).toBe(response.id)
      expect(final.status).toBe(response.status)
      expect(final.output.map(({ id, type }) => [id, type])).toEqual(response.output.map(({ id, type }) => [id, type]))
      expect(types).toHaveLength(eventsOf(body).length)
    }
    await fc.assert(fc.asyncProperty(runs, asked, check), { numRuns: often(60, 3) })
  })

  test('encode, then decode: the texts, thoughts and calls of the answer', () => {
    const check = (entries: Entry[]) => {
      const body = sent(entries)
      const { response } = eventsOf(body).at(-1) as unknown as { response: ResponseObject }
      if (response.status !== 'completed') return
      const heard = hear('openai-responses', [new TextEncoder().encode(body)], callOf([]))
      const said = (type: 'text-delta' | 'reasoning-delta') => {
        const blocks = new Map<string, string>()
        for (const part of heard) {
          if (part.type === type) blocks.set(part.id, (blocks.get(part.id) ?? '') + part.delta)
        }
        return [...blocks.values()].filter((each) => each !== '').toSorted()
      }
      const { answered, isWhole } = answeredIn(entries)
      if (!isWhole) return
      expect(said('text-delta')).toEqual(answered('text-delta'))
      expect(said('reasoning-delta')).toEqual(answered('reasoning-delta'))
      const calls = heard.flatMap((part) =>
        part.type === 'tool-call' && part.providerExecuted !== true ? [[part.toolName, part.input]] : [],
      )
      const own = response.output.flatMap((item) =>
        item.type === 'function_call' ? [[item.name, item.arguments]] : [],
      )
      expect(calls.map(String).toSorted()).toEqual(own.map(String).toSorted())
      expect(heard.find(({ type }) => type === 'finish')).toMatchObject({
        finishReason: { unified: own.length > 0 ? 'tool-calls' : 'stop' },
      })
    }
    fc.assert(fc.property(arbitraryCompletedRun, check), { numRuns: often(200, 3) })
  })
})
