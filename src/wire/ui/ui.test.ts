import { uiMessageChunkSchema, type UIMessage } from 'ai'
import { asSchema } from '@ai-sdk/provider-utils'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryRun } from '../../../test/arbitrary-run.ts'
import type { Entry } from '../../part/entry.ts'
import { cutAt, parseSse } from '../../../test/sse.ts'
import { wordsSaid } from '../../../test/words-said.ts'
import { show } from '../../../test/ui-client.ts'
import { v6Fault } from '../../../test/ui-v6-chunks.ts'
import { uiWire } from './ui.ts'
import type { WireContext } from '../wire.ts'
import { lastResume, wireContract } from '../wire.contract.ts'
import type { UiOptions } from './ui-chunk.ts'

type Chunk = { type: string; [field: string]: unknown }

const encodeAll = (entries: readonly Entry[], context?: WireContext, options?: Partial<UiOptions>): string => {
  const encoder = uiWire.createEncoder(context, options)
  return entries.map((entry) => encoder.encode(entry)).join('')
}

/** Checks the framing, and gives the chunks before `[DONE]`. */
function chunksOf(body: string): Chunk[] {
  const data = parseSse(new TextEncoder().encode(body)).map((event) => event.data)
  expect(data.pop()).toBe('[DONE]')
  expect(data).not.toContain('[DONE]')
  return data.map((json) => JSON.parse(json) as Chunk)
}

wireContract(uiWire, {
  options: fc.record({ ui7: fc.boolean() }),
  judge({ body, state, options: { ui7 } }) {
    expect(state).toBe('complete')
    expect(body).not.toContain('AFTER')
    const chunks = chunksOf(body)
    expect(chunks[0]).toEqual({ type: 'start', messageId: 'run-1' })
    const terminals = chunks.filter(({ type }) => type === 'finish' || type === 'error' || type === 'abort')
    expect(terminals).toEqual([chunks.at(-1)])
    let steps = 0
    const open = new Set<unknown>()
    for (const { type, id } of chunks) {
      if (type === 'start-step') expect(++steps).toBe(1)
      if (type === 'finish-step') {
        expect(--steps).toBe(0)
        // Version 6 forgets its open blocks here.
        expect(open.size).toBe(0)
      }
      if (type === 'text-start' || type === 'reasoning-start') open.add(id)
      if (type === 'text-end' || type === 'reasoning-end') open.delete(id)
      if (type === 'reset-step') open.clear()
    }
    expect(open.size).toBe(0)
    if (!ui7) for (const chunk of chunks) expect(v6Fault(chunk)).toBeUndefined()
  },
})

describe('UI wire', () => {
  test('ui: every chunk is of the official schema', async () => {
    const { validate } = asSchema(uiMessageChunkSchema)
    await fc.assert(
      fc.asyncProperty(arbitraryRun, fc.boolean(), async (entries, ui7) => {
        for (const chunk of chunksOf(encodeAll(entries, { resumedAt: lastResume(entries) }, { ui7 }))) {
          expect(await validate!(chunk)).toMatchObject({ success: true })
        }
      }),
      { numRuns: 60 },
    )
  })

  test('ui: any byte cut decodes alike', () => {
    fc.assert(
      fc.property(arbitraryRun, fc.array(fc.nat(), { maxLength: 20 }), (entries, places) => {
        const bytes = new TextEncoder().encode(uiWire.keepAlive + encodeAll(entries))
        expect(parseSse(...cutAt(bytes, places))).toEqual(parseSse(bytes))
      }),
    )
  })

  test('the official client shows the answer of the run and leaves nothing unfinished', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryRun, fc.boolean(), async (entries, ui7) => {
        const body = encodeAll(entries, { resumedAt: lastResume(entries) }, { ui7 })
        const last = chunksOf(body).at(-1)!
        const { message, status, errors } = await show(body)
        expect(errors).toEqual(last.type === 'error' ? [last['errorText']] : [])
        expect(status).toBe(last.type === 'error' ? 'error' : 'ready')
        if (message?.role !== 'assistant') return
        expect(message.id).toBe('run-1')
        const parts = message.parts as Chunk[]
        const states = parts.filter(({ type }) => type === 'text' || type === 'reasoning').map((part) => part['state'])
        expect(states).not.toContain('streaming')
        const ids = parts.flatMap((part) => (part['toolCallId'] === undefined ? [] : [part['toolCallId']]))
        expect(new Set(ids).size).toBe(ids.length)
        // After an abort an input stays as it was: an outcome might make the client send again by itself.
        if (last.type === 'error') expect(parts.map((part) => part['state'])).not.toContain('input-streaming')
        if (last.type !== 'error') expect(wordsOf(message)).toEqual(wordsSaid(entries))
      }),
      { numRuns: 100 },
    )
  })
})

function wordsOf({ parts }: UIMessage): string[] {
  return parts.flatMap((part) => (part.type === 'text' || part.type === 'reasoning' ? [part.text] : [])).sort()
}
