/** Streams of custom steps: which of them is the answer, how each ends, and that none is left open. */
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Part } from '../../src/part/part.ts'
import type { ExecutionContext, PrimitiveHandler } from '../../src/engine/registry.ts'
import { createRelay } from '../../src/relay/relay.ts'
import { latch } from '../../src/models/testing/scripted-model.ts'
import { createEngine, entriesOf, only, type Engine } from '../support/engine.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

async function start(mine: PrimitiveHandler, workflow = '[{ id: mine, type: mine }, { id: later, type: later }]') {
  engine = createEngine({ agents: { a: `workflow: ${workflow}` }, steps: { mine, later: () => 'later' } })
  return engine.runtime.start('a', {})
}

/** How the run ended; it has ended once, by the grammar. */
async function run(mine: PrimitiveHandler) {
  const started = await start(mine)
  const result = await started.result
  return { ...result, entries: await entriesOf(engine!.store, started.id) }
}

async function* words(): AsyncGenerator<string> {
  yield 'Hel'
  yield 'lo'
}

function relayed(): AsyncIterable<string> {
  const { sequence, chain, end } = createRelay<string>()
  void chain(words())
  end()
  return sequence
}

function byHand(): AsyncIterator<string> & AsyncIterable<string> {
  const inner = words()
  return {
    next: () => inner.next(),
    throw: (error) => inner.throw(error),
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

const part: Part = { type: 'data', name: 'progress', data: 1 }
async function* parts(_: unknown, { signal }: ExecutionContext): AsyncGenerator<Part, unknown> {
  yield part
  return { aborted: signal.aborted }
}

describe('what a step returns is the answer when it is a stream', () => {
  test.each<[string, () => unknown]>([
    ['a relay', relayed],
    ['an async generator', words],
    ['an iterator by hand', byHand],
    ['a ReadableStream', () => new Response('Hello').body],
    ['a Node stream', () => Readable.from(['Hel', 'lo'])],
    ['bytes of another realm', () => Readable.from([runInNewContext('new Uint8Array([72, 101, 108, 108, 111])')])],
    ['a Response', () => new Response('Hello')],
    ['a Response with JSON is its text', () => Response.json('Hello')],
  ])('%s: of a plain function and of an async one alike', async (name, make) => {
    const said = name.includes('JSON') ? '"Hello"' : 'Hello'
    for (const handler of [() => make(), async () => make()]) {
      expect(await run(handler)).toMatchObject({ outcome: 'completed', text: said })
      await engine!.close()
    }
  })

  test('a step that is a generator itself yields parts, and what it returns is its value', async () => {
    const wrapped: PrimitiveHandler = async function* (config, context) {
      return yield* parts(config, context)
    }
    const sync: PrimitiveHandler = function* (_, { signal }) {
      yield part
      return { aborted: signal.aborted }
    }
    for (const handler of [parts, parts.bind(undefined), new Proxy(parts, {}), wrapped, sync]) {
      const { outcome, output, entries } = await run(handler)
      expect([outcome, output]).toEqual(['completed', 'later'])
      expect(only(entries, 'step-finish')[0]).toMatchObject({ step: 'main/mine', result: { aborted: false } })
      expect(only(entries, 'data')).toMatchObject([{ step: 'main/mine', data: 1 }])
      await engine!.close()
    }
  })

  test('a generator of parts may return a stream, which is the answer', async () => {
    const { outcome, text, entries } = await run(async function* () {
      yield part
      return relayed()
    })
    expect([outcome, text]).toEqual(['completed', 'Hello'])
    expect(only(entries, 'data')).toMatchObject([{ step: 'main/mine' }])
  })

  test('parts and a value of a stream that says nothing: it is told that the value is lost, and what to write', async () => {
    const { outcome, entries } = await run((config, context) => parts(config, context))
    expect(outcome).toBe('completed')
    expect(only(entries, 'warning')).toMatchObject([
      { step: 'main/mine/1', code: 'value-lost', message: expect.stringContaining('async *') },
    ])
    const { entries: silent } = await run(async () => (async function* () {})())
    expect(only(silent, 'warning')).toEqual([])
  })
})

/** A source that says one thing and then nothing; it tells when it is waited for and when it is closed. */
function silent() {
  const waits = latch()
  let closed = 0
  let said = false
  const stream = new ReadableStream<string>(
    {
      pull(controller) {
        if (said) return void waits.arrive()
        said = true
        controller.enqueue('Begun')
      },
      cancel: () => void closed++,
    },
    { highWaterMark: 0 },
  )
  return { stream, waits: waits.reached, closed: () => closed }
}

const shapes: [string, (stream: ReadableStream<string>) => unknown][] = [
  ['a ReadableStream', (stream) => stream],
  ['a Response', (stream) => new Response(stream.pipeThrough(new TextEncoderStream()))],
  ['a wrapper', (stream) => ({ [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator]() })],
  [
    'a relay',
    (stream) => {
      const { sequence, chain } = createRelay<string>()
      void chain(stream)
      return sequence
    },
  ],
]

describe('a source that is silent is closed', () => {
  test.each(shapes.filter(([name]) => name !== 'a wrapper'))('%s, when the run is stopped', async (_, shape) => {
    const { stream, waits, closed } = silent()
    const started = await start(async () => shape(stream))
    await waits
    await started.stop()
    expect(await started.result).toMatchObject({ outcome: 'aborted', text: 'Begun' })
    expect(closed()).toBe(1)
    await entriesOf(engine!.store, started.id)
  })

  test('when its step takes too long, and the run goes on', async () => {
    const { stream, closed } = silent()
    const branch = '[{ id: mine, type: mine, timeouts: { step: 50ms } }]'
    const all = `{ id: all, type: parallel, config: { onError: continue, branches: { one: ${branch} } } }`
    const started = await start(async () => stream, `[${all}, { id: later, type: later }]`)
    expect(await started.result).toMatchObject({ outcome: 'completed', output: 'later' })
    expect(closed()).toBe(1)
  })

  test('when a branch beside it fails', async () => {
    const { stream, waits, closed } = silent()
    const branches = '{ one: [{ id: mine, type: mine }], two: [{ id: bad, type: mine, config: { bad: yes } }] }'
    const started = await start(async ({ bad }) => {
      if (bad === undefined) return stream
      await waits
      throw new Error('bad')
    }, `[{ id: all, type: parallel, config: { branches: ${branches} } }]`)
    expect(await started.result).toMatchObject({ outcome: 'failed' })
    expect(closed()).toBe(1)
  })

  test.each(shapes)('%s that comes when the run has been stopped', async (_, shape) => {
    const { stream, closed } = silent()
    const [begun, go] = [latch(), latch()]
    const started = await start(async () => {
      begun.open()
      await go.opened
      return shape(stream)
    })
    await begun.opened
    await started.stop()
    expect(await started.result).toMatchObject({ outcome: 'aborted' })
    go.open()
    await vi.waitFor(() => expect(closed()).toBe(1))
  })

  test('a generator of parts that is silent: it is left to clean up before the run ends', async () => {
    const waits = latch()
    const order: string[] = []
    const started = await start(async function* (_, { signal }) {
      try {
        yield part
        await new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
          waits.open()
        })
      } finally {
        // Well within the grace of 300 ms.
        await sleep(100)
        order.push('cleaned up')
      }
    })
    await waits.opened
    await started.stop()
    expect((await started.result).outcome).toBe('aborted')
    order.push('ended')
    expect(order).toEqual(['cleaned up', 'ended'])
  })
})

describe('a source that says a bad part is closed, and the run fails', () => {
  const bad = { type: 'text-delta', id: 'x', delta: 'no' }
  const stream = (cancel: () => void) =>
    new ReadableStream<unknown>({
      start: (controller) => (controller.enqueue('Half'), controller.enqueue(bad)),
      cancel,
    })

  test.each<[string, (close: () => void) => unknown]>([
    ['a ReadableStream', stream],
    [
      'a relay',
      (close) => {
        const { sequence, chain } = createRelay<unknown>()
        void chain(stream(close))
        return sequence
      },
    ],
    [
      'an async generator',
      (close) =>
        (async function* () {
          try {
            yield 'Half'
            yield bad
          } finally {
            close()
          }
        })(),
    ],
    ['a Node stream', (close) => Readable.from(['Half', bad]).on('close', close)],
  ])('%s', async (_, make) => {
    const closed = vi.fn<() => void>()
    const { outcome, error, text } = await run(async () => make(closed))
    expect([outcome, error?.code, text]).toEqual(['failed', 'bad-part', 'Half'])
    await vi.waitFor(() => expect(closed).toHaveBeenCalledTimes(1))
  })

  test('a generator of parts', async () => {
    const closed = vi.fn<() => void>()
    const { outcome, error } = await run(async function* () {
      try {
        yield 'text'
      } finally {
        closed()
      }
    })
    expect([outcome, error?.code]).toEqual(['failed', 'bad-part'])
    expect(error?.message).toContain('return a stream')
    expect(closed).toHaveBeenCalledTimes(1)
  })
})

test('a step asks before its answer, not in the middle of it: it would begin again, and what was read stays', async () => {
  async function* asks({ request }: Pick<ExecutionContext, 'request'>): AsyncGenerator<string> {
    yield 'Hel'
    await request({ message: 'Go on?' })
    yield 'lo'
  }
  const { outcome, error, entries } = await run((_, context) => asks(context))
  expect(outcome).toBe('failed')
  expect(error).toMatchObject({
    code: 'bad-handler',
    message: expect.stringContaining('Ask before its first word') as string,
  })
  expect(only(entries, 'request')).toEqual([])
  expect(only(entries, 'text-end')).toHaveLength(1)
})
