import { describe, expect, test, vi } from 'vitest'
import type { ModelPart } from '../part/model-part.ts'
import { streamModel, type ModelCall } from './model.ts'
import type { LanguageModel } from './language-model.ts'
import {
  createScriptedModel,
  drop,
  errorPart,
  finish,
  latch,
  reasoning,
  text,
  toolCall,
  type ScriptStep,
} from './testing/scripted-model.ts'

function call(options: Partial<ModelCall> = {}): ModelCall {
  return { messages: [{ role: 'user', content: 'Hi' }], signal: new AbortController().signal, ...options }
}

async function play(steps: ScriptStep[] | LanguageModel, options?: Partial<ModelCall>) {
  const model = Array.isArray(steps) ? createScriptedModel([steps]) : steps
  const parts: ModelPart[] = []
  const error: unknown = await streamModel(model, call(options), (part) => parts.push(part)).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return { parts, types: parts.map(({ type }) => type), error }
}

describe('model reading', () => {
  test('hands on every part as it is', async () => {
    const script = [reasoning('a'), text('b', 'c'), toolCall('1', 'x', { y: 1 }), finish('tool-calls')]
    const { parts, error } = await play(script)
    expect(error).toBeUndefined()
    const expected = script
      .flat(3)
      .map((step) => ('id' in step && step.id === '' ? { ...step, id: expect.any(String) as string } : step))
    expect(parts).toEqual(expected)
  })

  test("drops pings and gives files V3's form", async () => {
    const bytes = new Uint8Array([1, 2])
    const { parts } = await play([
      { type: 'ping' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQI=' } },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: bytes } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://example.com/a') } },
      { type: 'custom', kind: 'a.b' },
      finish(),
    ])
    expect(parts.slice(0, -1)).toEqual([
      { type: 'file', mediaType: 'image/png', data: 'AQI=' },
      { type: 'file', mediaType: 'image/png', data: bytes },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'url', url: 'https://example.com/a' } },
      { type: 'custom', kind: 'a.b' },
    ])
  })

  test('reads no further while its consumer is not ready', async () => {
    const model = createScriptedModel([[text('a', 'b', 'c'), finish()]])
    const gate = latch()
    const types: string[] = []
    const done = streamModel(model, call(), ({ type }) => types.push(type), {
      ready: () => {
        if (types.length !== 2) return undefined
        gate.arrive()
        return gate.opened
      },
    })
    await gate.reached
    // A macrotask later nothing more has come.
    await new Promise((resolve) => setImmediate(resolve))
    expect(types).toEqual(['text-start', 'text-delta'])
    gate.open()
    await done
    expect(types).toHaveLength(6)
  })

  test('what the consumer throws comes out as it is, and the provider is told to stop', async () => {
    const model = createScriptedModel([[text('a'), latch(), finish()]])
    const own = new Error('mine')
    const throwing = () => {
      throw own
    }
    await expect(streamModel(model, call(), throwing)).rejects.toBe(own)
    expect(model.calls[0]?.cancelled).toBe(true)
    const again = createScriptedModel([[text('a'), latch(), finish()]])
    const rejecting = streamModel(again, call(), () => {}, { ready: () => Promise.reject(own) })
    await expect(rejecting).rejects.toBe(own)
    expect(again.calls[0]?.cancelled).toBe(true)
  })

  test.each<[string, ScriptStep[], string, string[]]>([
    ['a dropped connection', [text('a'), drop()], 'connection-lost', ['text-start', 'text-delta', 'text-end']],
    ['a drop at once', [drop()], 'connection-lost', []],
    ['an end without finish', [text('a')], 'model-incomplete', ['text-start', 'text-delta', 'text-end']],
    ['an empty stream', [], 'model-incomplete', []],
    ['interrupted', [finish('interrupted')], 'model-incomplete', ['finish']],
    [
      'an error part, then the end',
      [errorPart({ type: 'overloaded_error', message: 'x' })],
      'model-unavailable',
      ['error'],
    ],
    ['an error part, then a drop', [errorPart({ message: 'x' }), drop()], 'model-failed', ['error']],
    ['an error part, then finish: error', [errorPart('x'), finish('error')], 'model-failed', ['error', 'finish']],
    ['finish: error without an error part', [finish('error')], 'model-incomplete', ['finish']],
    ['finish: other without any content', [finish('other')], 'model-incomplete', ['finish']],
  ])('%s', async (_, script, code, expected) => {
    const { types, error, parts } = await play(script)
    expect(error).toMatchObject({ name: 'MillraceError', code })
    expect(types).toEqual(expected)
    const reported = parts.find((part) => part.type === 'error')
    if (reported) expect(reported).toEqual({ type: 'error', error })
  })

  test.each<[string, ScriptStep[]]>([
    ['an error the model recovers from', [errorPart('bad chunk'), text('a'), finish()]],
    ['a connection that breaks after finish', [text('a'), finish(), drop()]],
  ])('%s is no failure', async (_, script) => {
    const { error, types } = await play(script)
    expect(error).toBeUndefined()
    expect(types).toContain('finish')
  })

  test('a stream that stays open after finish is closed after a second; what trails is handed on', async () => {
    vi.useFakeTimers()
    try {
      const model = createScriptedModel([[finish(), { type: 'raw', rawValue: 1 }, latch()]])
      const types: string[] = []
      let isDone = false
      const done = streamModel(model, call(), ({ type }) => types.push(type)).then(() => (isDone = true))
      await vi.waitUntil(() => types.length === 2)
      await vi.advanceTimersByTimeAsync(900)
      expect(isDone).toBe(false)
      await vi.advanceTimersByTimeAsync(100)
      await done
      expect(model.calls[0]?.cancelled).toBe(true)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test('no timer outlives an answer that has ended', async () => {
    vi.useFakeTimers()
    try {
      await play([text('a'), finish()])
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test.each([false, true])('stopping settles at once and silences the model (deaf: %s)', async (deaf) => {
    const gate = latch()
    const model = createScriptedModel([[text('a'), gate, text('b'), finish()]], { deaf })
    const abort = new AbortController()
    const types: string[] = []
    const done = streamModel(model, call({ signal: abort.signal }), ({ type }) => types.push(type))
    await gate.reached
    abort.abort(new Error('stop'))
    await expect(done).rejects.toMatchObject({ code: 'aborted', cause: expect.objectContaining({ message: 'stop' }) })
    expect(model.calls[0]?.aborted).toBe(true)
    expect(model.calls[0]?.options.abortSignal).toBe(abort.signal)
    // An errored stream has nothing left to cancel.
    if (deaf) expect(model.calls[0]?.cancelled).toBe(true)
    gate.open()
    await new Promise((resolve) => setImmediate(resolve))
    expect(types).toEqual(['text-start', 'text-delta', 'text-end'])
  })

  test('stopping settles while doStream ignores the signal, and cancels the stream that comes too late', async () => {
    const late = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const inner = createScriptedModel([[text('a'), finish()]], { deaf: true })
    const model = {
      ...inner,
      doStream: async (options: Parameters<typeof inner.doStream>[0]) => {
        asked.resolve()
        await late.promise
        return inner.doStream(options)
      },
    }
    const abort = new AbortController()
    const onPart = vi.fn<(part: ModelPart) => void>()
    const done = streamModel(model, call({ signal: abort.signal }), onPart)
    await asked.promise
    abort.abort()
    await expect(done).rejects.toMatchObject({ code: 'aborted' })
    late.resolve()
    await vi.waitUntil(() => inner.calls[0]?.cancelled)
    expect(onPart).not.toHaveBeenCalled()
  })

  test('stopping while the consumer is not ready settles too', async () => {
    const abort = new AbortController()
    const model = createScriptedModel([[text('a'), finish()]])
    const waiting = latch()
    const never = () => {
      waiting.arrive()
      return waiting.opened
    }
    const done = streamModel(model, call({ signal: abort.signal }), () => {}, { ready: never })
    await waiting.reached
    abort.abort()
    await expect(done).rejects.toMatchObject({ code: 'aborted' })
  })

  test('a signal that has fired before asks nobody', async () => {
    const model = createScriptedModel([[finish()]])
    await expect(streamModel(model, call({ signal: AbortSignal.abort() }), () => {})).rejects.toMatchObject({
      code: 'aborted',
    })
    expect(model.calls).toHaveLength(0)
  })
})
