/** Which values can be chained, and that every source is closed. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { ReadableStream as NodeStream } from 'node:stream/web'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createRelay } from './relay.ts'
import { hearUnhandled, readAll } from './testing/relay-sources.ts'

const heard = hearUnhandled()
afterAll(async () => expect(await heard()).toEqual([]))

test.each<[string, unknown, string]>([
  ['a string', 'text', 'chain([text])'],
  ['a number', 7, 'got number'],
  ['nothing', undefined, 'end()'],
  ['a function', async function* () {}, 'what it returns'],
  ['a Response', new Response('text'), 'its body'],
  ['an object', { next: () => {} }, '[object Object]'],
])('%s is refused, with the cure', (_, source, cure) => {
  const { chain, end } = createRelay<string>()
  const refused = expect.objectContaining({
    name: 'MillraceError',
    code: 'bad-source',
    message: expect.stringContaining(cure),
  })
  expect(() => chain(source as string[])).toThrow(refused)
  end()
  expect(() => chain(source as string[])).toThrow(refused)
})

describe('web streams', () => {
  test.each([false, true])('one that was read has its lock released, also when it broke (eager: %s)', async (eager) => {
    const { sequence, chain, end } = createRelay<number>({ eager })
    const whole = NodeStream.from([1, 2]) as ReadableStream<number>
    const broken = new ReadableStream<number>({ pull: (controller) => controller.error(new Error('broke')) })
    const promised = NodeStream.from([3]) as ReadableStream<number>
    void chain(whole)
    void chain(Promise.resolve(promised))
    void chain(broken)
    end()
    const { items, error } = await readAll(sequence)
    expect([items, (error as Error).message]).toEqual([[1, 2, 3], 'broke'])
    expect([whole, promised, broken].map(({ locked }) => locked)).toEqual([false, false, false])
  })

  test('one that is left is cancelled and has its lock released; so is one before its turn', async () => {
    const { sequence, chain } = createRelay<number>()
    const cancelled: string[] = []
    const [current, queued, late] = ['current', 'queued', 'late'].map(
      (name) =>
        new ReadableStream<number>({
          // Cancelling never resolves.
          cancel: () => (cancelled.push(name), new Promise(() => {})),
        }),
    )
    void chain(current!)
    void chain(Promise.resolve(queued!))
    const waiting = sequence.next()
    await sequence.return()
    expect(await waiting).toEqual({ done: true, value: undefined })
    expect(await chain(late!)).toEqual({ accepted: false })
    expect(cancelled.toSorted()).toEqual(['current', 'late', 'queued'])
    expect([current, queued, late].map((stream) => stream!.locked)).toEqual([false, false, false])
  })

  test('one that somebody else reads is refused; one that is locked before its turn is an error', async () => {
    const { sequence, chain } = createRelay<string>()
    const { body } = new Response('text')
    const stream = body!.pipeThrough(new TextDecoderStream())
    void chain(stream)
    stream.getReader()
    expect(() => chain(stream)).toThrow(expect.objectContaining({ code: 'bad-source' }))
    expect((await readAll(sequence)).error).toBeInstanceOf(TypeError)
  })

  test('through a transform, and out through a Response', async () => {
    const { sequence, chain, end } = createRelay<string>()
    for (const text of ['eins ', 'zwei ', 'drei']) {
      void chain(new Response(text).body!.pipeThrough(new TextDecoderStream()))
    }
    end()
    const bytes = (NodeStream.from(sequence) as ReadableStream<string>).pipeThrough(new TextEncoderStream())
    expect(await new Response(bytes).text()).toBe('eins zwei drei')
  })

  test('bodies of requests: who leaves closes the connections, of the current one and of one before its turn', async () => {
    const closed: string[] = []
    const server = createServer((request, response) => {
      response.on('close', () => closed.push(request.url!))
      response.write('begun')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { sequence, chain } = createRelay<Uint8Array>()
    const [current, queued] = await Promise.all(['/current', '/queued'].map((path) => fetch(url + path)))
    void chain(current!.body!)
    void chain(queued!.body!)
    expect(new TextDecoder().decode((await sequence.next()).value as Uint8Array)).toBe('begun')
    const waiting = sequence.next()
    await sequence.return()
    await waiting
    await vi.waitFor(() => expect(closed.toSorted()).toEqual(['/current', '/queued']))
  })
})

describe("Node's streams", () => {
  test('are read like others', async () => {
    const { sequence, chain, end } = createRelay<string>()
    void chain(Readable.from(['a', 'b']))
    void chain(new PassThrough({ encoding: 'utf8' }).end('c'))
    end()
    expect(await readAll(sequence)).toEqual({ items: ['a', 'b', 'c'] })
  })

  test('are destroyed when they are left, also while they are silent, and before their turn', async () => {
    const { sequence, chain } = createRelay<string>()
    const [current, queued] = [new PassThrough(), new PassThrough()]
    void chain(current)
    void chain(queued)
    const waiting = sequence.next()
    await sequence.return()
    expect(await waiting).toEqual({ done: true, value: undefined })
    await vi.waitFor(() => expect([current.destroyed, queued.destroyed]).toEqual([true, true]))
  })
})

describe('sync iterables', () => {
  test('what they give is awaited; one whose promise rejects is closed', async () => {
    const { sequence, chain } = createRelay<number>()
    let closed = 0
    function* promises(): Generator<number | Promise<number>> {
      try {
        yield Promise.resolve(1)
        yield 2
        yield Promise.reject(new Error('broke'))
        yield 4
      } finally {
        closed++
      }
    }
    void chain(promises())
    const { items, error } = await readAll(sequence)
    expect([items, (error as Error).message, closed]).toEqual([[1, 2], 'broke', 1])
  })

  test('maps and sets are lists; one that is both is taken as async', async () => {
    const { sequence, chain, end } = createRelay<unknown>()
    void chain(new Set([1, 2]))
    void chain(new Map([[3, 4]]))
    void chain({
      *[Symbol.iterator]() {
        yield 'sync'
      },
      async *[Symbol.asyncIterator]() {
        yield 'async'
      },
    })
    end()
    expect(await readAll(sequence)).toEqual({ items: [1, 2, [3, 4], 'async'] })
  })
})

test('an async iterator may answer without a promise, or with what is only like one', async () => {
  const { sequence, chain, end } = createRelay<number>()
  const answers = [
    { done: false, value: 1 },
    // oxlint-disable-next-line unicorn/no-thenable -- as some libraries have them
    { then: (resolve: (result: unknown) => void) => resolve({ done: false, value: 2 }) },
    { done: true, value: undefined },
  ]
  void chain({ [Symbol.asyncIterator]: () => ({ next: () => answers.shift() as never }) } as AsyncIterable<number>)
  end()
  expect(await readAll(sequence)).toEqual({ items: [1, 2] })
})

test('what only wraps a source is closed through what it wraps, also before its turn', async () => {
  const { sequence, chain } = createRelay<string>()
  let cancelled = false
  const body = new ReadableStream<string>({ cancel: () => void (cancelled = true) })
  void chain([''])
  void chain({ [Symbol.asyncIterator]: () => body[Symbol.asyncIterator]() })
  await sequence.next()
  await sequence.return()
  expect(cancelled).toBe(true)
})

test('a promise that is late gives its source to be disposed', async () => {
  const { sequence, chain, end } = createRelay<string>()
  const late = Promise.withResolvers<ReadableStream<string>>()
  const answer = chain(late.promise)
  const waiting = sequence.next()
  end()
  await sequence.return()
  expect([await waiting, await answer]).toEqual([{ done: true, value: undefined }, { accepted: false }])
  let cancelled = false
  late.resolve(new ReadableStream({ cancel: () => void (cancelled = true) }))
  await vi.waitFor(() => expect(cancelled).toBe(true))
})
