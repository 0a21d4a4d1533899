import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createNodeListener } from '../server/http/node-listener.ts'
import { fromPromises, sourceOf, toBody, type BodySource } from './streamed-body.ts'

/** A source that is told what to say. */
function createTold() {
  const told: PromiseWithResolvers<string | undefined>[] = []
  const asked: PromiseWithResolvers<void>[] = []
  const slot = <T>(list: PromiseWithResolvers<T>[], i: number) => (list[i] ??= Promise.withResolvers<T>())
  const left = Promise.withResolvers<void>()
  let calls = 0
  const source: BodySource = {
    next: fromPromises(() => {
      slot(asked, calls).resolve()
      return slot(told, calls++).promise
    }),
    cancel: () => left.resolve(),
  }
  return {
    source,
    left: left.promise,
    calls: () => calls,
    asked: (i: number) => slot(asked, i).promise,
    tell: (i: number, piece: string | undefined) => slot(told, i).resolve(piece),
    breakOff: (i: number) => slot(told, i).reject(new Error('incomplete')),
  }
}

const senders: Record<string, (body: ReadableStream<Uint8Array>) => Promise<Response>> = {
  'the Web’s': async (body) => new Response(body),
  async ours(body) {
    const handler = async () => new Response(body)
    const server = createServer(createNodeListener(handler, (error) => expect.unreachable(String(error))))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close().closeAllConnections())
    return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  },
}

describe.each(Object.entries(senders))('%s sender', (name, send) => {
  async function open(told: ReturnType<typeof createTold>) {
    const body = toBody(told.source)
    const reader = (await send(body)).body!.pipeThrough(new TextDecoderStream()).getReader()
    onTestFinished(() => reader.cancel().catch(() => undefined))
    return { body, read: async () => (await reader.read()).value, leave: () => reader.cancel() }
  }

  test('writes the pieces in order and ends behind the last', async () => {
    const told = createTold()
    const { body, read } = await open(told)
    const first = read()
    told.tell(0, 'é1')
    expect(await first).toBe('é1')
    told.tell(1, '2')
    expect(await read()).toBe('2')
    told.tell(2, undefined)
    expect(await read()).toBeUndefined()
    expect(body.locked).toBe(name !== 'ours')
  })

  test('writes what is said between two pieces', async () => {
    const told = createTold()
    const { read } = await open(told)
    const first = read()
    await told.asked(0)
    told.source.sendKeepAlive!('still here')
    expect(await first).toBe('still here')
    const second = read()
    told.tell(0, 'piece')
    expect(await second).toBe('piece')
  })

  test('breaks off behind what was written', async () => {
    const told = createTold()
    const { read } = await open(told)
    told.tell(0, 'half')
    expect(await read()).toBe('half')
    const second = read()
    told.breakOff(1)
    await expect(second).rejects.toThrow()
  })

  test('leaves when its reader does', async () => {
    const told = createTold()
    const { read, leave } = await open(told)
    told.tell(0, 'piece')
    expect(await read()).toBe('piece')
    await leave()
    await told.left
  })
})

test('as a stream it asks for nothing before it is read, and for a piece at a time', async () => {
  const told = createTold()
  const reader = toBody(told.source).getReader()
  await new Promise((resolve) => setImmediate(resolve))
  expect(told.calls()).toBe(0)
  told.tell(0, 'a')
  told.tell(1, 'b')
  await reader.read()
  await new Promise((resolve) => setImmediate(resolve))
  expect(told.calls()).toBe(1)
})

test('a source is found behind its own stream only, while nobody reads that', () => {
  const { source } = createTold()
  const body = toBody(source)
  expect(sourceOf(new Response(body).body!)).toBe(source)
  expect(sourceOf(new ReadableStream())).toBeUndefined()
  expect(sourceOf(body.pipeThrough(new TransformStream()))).toBeUndefined()
  expect(sourceOf(body)).toBeUndefined()
})
