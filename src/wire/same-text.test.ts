/** Whatever protocol a client speaks, it reads the same text of a run. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { answeredIn } from '../../test/answered-blocks.ts'
import { arbitraryCompletedRun, arbitraryRun } from '../../test/arbitrary-run.ts'
import type { Entry } from '../part/entry.ts'
import { agUiWire } from './ag-ui/ag-ui.ts'
import { messagesJsonWire } from './messages/messages-json.ts'
import { messagesWire } from './messages/messages.ts'
import { openaiWire } from './openai/openai.ts'
import { responsesJsonWire } from './responses/responses-json.ts'
import { responsesWire } from './responses/responses.ts'
import { textWire } from './text/text.ts'
import { uiWire } from './ui/ui.ts'
import type { Encoder, Piece } from './wire.ts'

type Frame = Record<string, unknown>

function encode<Output extends Piece>(encoder: Encoder<Output>, entries: readonly Entry[]): Output[] {
  return entries.map((entry) => encoder.encode(entry))
}

function framesOf(encoder: Encoder<string>, entries: readonly Entry[]): Frame[] {
  return encode(encoder, entries)
    .join('')
    .split('\n')
    .flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice('data: '.length)) as Frame] : []))
}

/** The deltas of each block, which is told by the value of `key`. */
function blocksIn(frames: readonly Frame[], type: string, key: string, text = 'delta'): string[] {
  const blocks = new Map<unknown, string>()
  for (const frame of frames) {
    if (frame['type'] === type) blocks.set(frame[key], (blocks.get(frame[key]) ?? '') + String(frame[text]))
  }
  return [...blocks.values()]
}

interface Item {
  type: string
  text?: string
  content?: { type: string; text?: string }[]
}

const texts = {
  'Responses, streamed': (entries) =>
    blocksIn(framesOf(responsesWire.createEncoder({}, {}), entries), 'response.output_text.delta', 'item_id'),
  'Responses, whole': (entries) => {
    const [response] = encode(responsesJsonWire.createEncoder({}, {}), entries).flat()
    return (response!.output as Item[]).flatMap(({ content = [] }) => content.map(({ text = '' }) => text))
  },
  'Messages, streamed': (entries) => {
    const deltas = framesOf(messagesWire.createEncoder({}, {}), entries).flatMap(({ type, index, delta }) => {
      return type === 'content_block_delta' ? [{ index, ...(delta as Frame) }] : []
    })
    return blocksIn(deltas, 'text_delta', 'index', 'text')
  },
  'Messages, whole': (entries) => {
    const [result] = encode(messagesJsonWire.createEncoder({}, {}), entries).flat()
    const { message } = result as { message: { content: Item[] } }
    return message.content.flatMap(({ type, text = '' }) => (type === 'text' ? [text] : []))
  },
  useChat: (entries) => blocksIn(framesOf(uiWire.createEncoder({}, {}), entries), 'text-delta', 'id'),
  'AG-UI': (entries) =>
    blocksIn(framesOf(agUiWire.createEncoder({}, {}), entries), 'TEXT_MESSAGE_CONTENT', 'messageId'),
} satisfies Record<string, (entries: readonly Entry[]) => string[]>

const said = (blocks: readonly string[]) => blocks.filter((text) => text !== '' && text !== '(no text)').toSorted()

describe('the text of a run', () => {
  test.each(Object.entries(texts))('%s', (_, read) => {
    let checked = 0
    const check = (entries: Entry[]) => {
      const { answered, isWhole } = answeredIn(entries)
      // An attempt that was lost is text in some protocols, and some say in words what waits.
      if (!isWhole || !isCompleted(entries)) return
      expect(said(read(entries))).toEqual(answered('text-delta'))
      checked++
    }
    fc.assert(fc.property(fc.oneof(arbitraryCompletedRun, arbitraryRun), check), { numRuns: 600 })
    expect(checked).toBeGreaterThan(10)
  })

  test('protocols with one text have all of it, and the same', () => {
    let checked = 0
    const check = (entries: Entry[]) => {
      const { answered, isWhole } = answeredIn(entries)
      if (!isWhole || !isCompleted(entries)) return
      checked++
      const text = encode(textWire.createEncoder({}, {}), entries).join('')
      const chat = framesOf(openaiWire.createEncoder({}, {}), entries).map(
        ({ choices }) => (choices as { delta: { content?: string } }[])[0]?.delta.content ?? '',
      )
      expect(chat.join('')).toBe(text)
      // Texts that are written at once are in pieces there, with lines between them.
      const letters = (all: string) => [...all.replaceAll(/\s/gu, '')].toSorted().join('')
      expect(letters(text)).toBe(letters(answered('text-delta').join('')))
    }
    fc.assert(fc.property(arbitraryCompletedRun, check), { numRuns: 600 })
    expect(checked).toBeGreaterThan(10)
  })
})

/** Not cut off, and with no call that a client must not run: some can be said in one protocol and not in another. */
function isCompleted(entries: readonly Entry[]): boolean {
  const [response] = encode(responsesJsonWire.createEncoder({}, {}), entries).flat()
  const [result] = encode(messagesJsonWire.createEncoder({}, {}), entries).flat()
  return response?.status === 'completed' && result !== undefined && 'message' in result
}
