import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryRun } from '../../../test/arbitrary-run.ts'
import { parseSse } from '../../../test/sse.ts'
import type { Entry } from '../../part/entry.ts'
import { createOpenAiAnswer } from '../openai/openai-answer.ts'
import { createChunkOutput, type OpenAiEvent } from '../openai/openai-chunk.ts'
import type { OpenAiOptions } from '../openai/openai-output.ts'
import { openaiWire } from '../openai/openai.ts'
import { projectUi } from '../ui/ui-projection.ts'
import { uiWire } from '../ui/ui.ts'
import { createWire, type Framing, type Wire } from '../wire.ts'
import { joined, wireContract } from '../wire.contract.ts'
import { objects } from './objects.ts'
import { sse, createTextFrames } from './text-frames.ts'

const uiObjects = createWire({
  name: 'ui as objects',
  project: projectUi,
  framing: objects(),
})
const openaiObjects = createWire<OpenAiEvent, OpenAiOptions, OpenAiEvent[]>({
  name: 'openai as objects',
  project: (sink, context, options) => createOpenAiAnswer(context, options, createChunkOutput(sink, options)),
  framing: objects(),
})

/** Each event as bytes: its length, then its JSON. */
const bytes: Framing<object, Uint8Array> = {
  contentType: 'application/octet-stream',
  keepAlive: new Uint8Array(),
  open() {
    let written: number[] = []
    let muted = false
    const send = (event: object): void => {
      const body = new TextEncoder().encode(JSON.stringify(event))
      if (!muted) written.push(body.length >> 8, body.length & 255, ...body)
    }
    return {
      get muted() {
        return muted
      },
      mute: (isMuted) => void (muted = isMuted),
      send,
      prepare:
        (make) =>
        (text, number = 0) =>
          send(make(text, number)),
      end: () => undefined,
      take() {
        const taken = Uint8Array.from(written)
        written = []
        return taken
      },
    }
  },
}

wireContract(uiObjects, {
  numRuns: 60,
  options: fc.record({ ui7: fc.boolean() }),
})

describe('framings', () => {
  test.each([
    ['ui', uiWire, uiObjects],
    ['openai', openaiWire, openaiObjects],
  ] as [string, Wire, Wire<object, object[]>][])(
    '%s: the frames are the events, in every framing',
    (_, text, events) => {
      fc.assert(
        fc.property(arbitraryRun, (entries) => {
          const body = encodeAll(text, entries)
          const data = parseSse(new TextEncoder().encode(body)).map((event) => event.data)
          expect(data.pop()).toBe('[DONE]')
          const wanted = encodeAll(events, entries).map((event) => JSON.stringify(event))
          expect(data).toEqual(wanted)
        }),
        { numRuns: 60 },
      )
    },
  )

  test('a framing may give bytes', () => {
    const wire = createWire({
      name: 'ui as bytes',
      project: projectUi,
      framing: bytes,
    })
    fc.assert(
      fc.property(arbitraryRun, (entries) => {
        const all = Uint8Array.from(encodeAll(wire, entries))
        const read: string[] = []
        for (let at = 0; at < all.length;) {
          const end = at + 2 + all[at]! * 256 + all[at + 1]!
          read.push(new TextDecoder().decode(all.subarray(at + 2, end)))
          at = end
        }
        expect(read).toEqual(encodeAll(uiObjects, entries).map((event) => JSON.stringify(event)))
      }),
      { numRuns: 20 },
    )
  })

  test('a prepared event is the event, whatever its other fields hold', () => {
    const names = fc.oneof(fc.string(), fc.constant('\u0001text\u0001'))
    const codes = fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units))
    fc.assert(
      fc.property(names, names, fc.oneof(fc.string({ unit: 'binary' }), codes), (id, more, delta) => {
        const make = (text: string) => ({ id, delta: text, more: [{ more }] })
        const [sent, prepared] = [sse().open(), sse().open()]
        const say = prepared.prepare(make)
        for (const text of [delta, delta, 'b']) {
          sent.send(make(text))
          say(text)
          expect(prepared.take()).toBe(sent.take())
        }
      }),
    )
  })

  test('a prepared event may differ in a number, too', () => {
    const times = fc.integer({ min: 1_705_584_896_000, max: 1_705_584_899_999 })
    const numbers = fc.oneof(
      times,
      fc.integer(),
      fc.double(),
      fc.constantFrom(0, 999, 1000, 1e21, 9_007_000_000_000_001),
    )
    const events = fc.array(fc.tuple(fc.string(), numbers, fc.nat({ max: 2 })), { maxLength: 20 })
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.constant('9007000000000001')), events, (id, list) => {
        const make = (delta: string, time: number) => ({ time, id, delta })
        const [sent, prepared] = [sse().open(), sse().open()]
        const say = prepared.prepare(make)
        for (const [delta, time, more] of list) {
          for (let i = 0; i <= more; i++) {
            sent.send(make(delta, time))
            say(delta, time)
          }
        }
        expect(prepared.take()).toBe(sent.take())
      }),
    )
    // The number may stand behind the text, or not at all.
    for (const make of [(text: string, n: number) => ({ text, n }), (text: string) => ({ text })]) {
      const [sent, prepared] = [sse().open(), sse().open()]
      const say = prepared.prepare(make)
      for (const number of [1234, 1235, 1235]) {
        sent.send(make('a', number))
        say('a', number)
      }
      expect(prepared.take()).toBe(sent.take())
    }
  })

  test('an event is prepared when the second one comes', () => {
    let made = 0
    const say = sse()
      .open()
      .prepare((text) => ({ text, made: void made++ }))
    say('a')
    expect(made).toBe(1)
    say('b')
    const forPreparing = made
    say('c')
    expect(made).toBe(forPreparing)
  })

  test('muted events are not framed, prepared or not; the end is a frame like others', () => {
    const frames = createTextFrames<object>((event) => `${JSON.stringify(event)};`, 'end')
    const say = frames.prepare((text) => ({ text }))
    say('a')
    frames.mute(true)
    frames.send({ no: 1 })
    say('b')
    frames.end()
    frames.mute(false)
    say('c')
    frames.end()
    expect(frames.take()).toBe('{"text":"a"};{"text":"c"};end')
    expect(frames.take()).toBe('')
  })
})

function encodeAll<Out extends { length: number }>(wire: Wire<object, Out>, entries: readonly Entry[]): Out {
  const encoder = wire.createEncoder()
  return joined(entries.map((entry) => encoder.encode(entry)))
}
