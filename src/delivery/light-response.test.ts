import { describe, expect, test } from 'vitest'
import { listen } from '../server/http/listen.contract.ts'
import { headerOf, lightAnswer, lightResponse, onAnswerEnd, realResponse, withoutBody } from './light-response.ts'
import { fromPromises, type BodySource } from './streamed-body.ts'

const head = { 'content-type': 'text/plain; charset=utf-8', 'x-run': 'r1' }

function create(pieces: readonly string[] = ['Hello ', 'world']) {
  const left = { count: 0 }
  let at = 0
  const source: BodySource<string | Uint8Array> = {
    next: fromPromises(async () => pieces[at++]),
    cancel: () => void left.count++,
  }
  return { left, response: lightResponse(head, source) }
}

describe('to whoever does not know better it is a Response', () => {
  test('with status, headers and a body', async () => {
    const { response } = create()
    expect(response).toBeInstanceOf(Response)
    expect([response.status, response.ok, response.type, response.bodyUsed]).toEqual([200, true, 'default', false])
    expect([...response.headers]).toEqual([
      ['content-type', 'text/plain; charset=utf-8'],
      ['x-run', 'r1'],
    ])
    expect(await response.text()).toBe('Hello world')
    expect(response.bodyUsed).toBe(true)
  })

  test('that may be cloned, and made into another one with other headers', async () => {
    const { response } = create()
    response.headers.set('x-mine', 'yes')
    const copy = response.clone()
    expect([copy.headers.get('x-mine'), await copy.text(), await response.text()]).toEqual([
      'yes',
      'Hello world',
      'Hello world',
    ])
    const { response: second } = create()
    const other = new Response(second.body, second)
    expect([other.status, other.headers.get('x-run'), await other.text()]).toEqual([200, 'r1', 'Hello world'])
  })

  test('whose body is left when it is cancelled', async () => {
    const { response, left } = create()
    await response.body!.cancel()
    expect(left.count).toBe(1)
  })
})

test('a real one is made once, with what was set before; one that is real stays as it is', async () => {
  const { response } = create()
  response.headers.set('x-mine', 'yes')
  const real = realResponse(response)
  expect(Reflect.get(Response.prototype, 'status', real)).toBe(200)
  expect(realResponse(response)).toBe(real)
  expect(real.headers.get('x-mine')).toBe('yes')
  expect(await real.text()).toBe('Hello world')
  const plain = new Response('x')
  expect(realResponse(plain)).toBe(plain)
})

test('a header is found without Headers; what is set or deleted later counts', () => {
  const { response } = create()
  expect([headerOf(response, 'x-run'), headerOf(response, 'x-none'), headerOf(response, 'constructor')]).toEqual([
    'r1',
    null,
    null,
  ])
  response.headers.delete('x-run')
  response.headers.set('x-none', 'some')
  expect([headerOf(response, 'x-run'), headerOf(response, 'x-none')]).toEqual([null, 'some'])
})

test('a listener gets its head and its source, unless somebody has asked for the body', () => {
  const { response } = create()
  expect(lightAnswer(response)?.head).toEqual(head)
  response.headers.append('set-cookie', 'a=1')
  response.headers.append('set-cookie', 'b=2')
  expect(lightAnswer(response)?.head).toEqual({ ...head, 'set-cookie': ['a=1', 'b=2'] })
  expect(response.body).not.toBeNull()
  expect(lightAnswer(response)).toBeUndefined()
  expect(lightAnswer(new Response('x'))).toBeUndefined()
})

describe.each(['light', 'with a body that was asked for', 'made real'])('over our listener, %s', (how) => {
  const made = (response: Response) => {
    if (how === 'with a body that was asked for') void response.body
    return how === 'made real' ? realResponse(response) : response
  }

  test('its head arrives, with what a handler around it has set, and its body', async () => {
    const { response } = create()
    const { url } = await listen(async () => {
      response.headers.append('set-cookie', 'a=1')
      response.headers.append('set-cookie', 'b=2')
      return made(response)
    })
    const got = await fetch(url)
    expect([got.status, got.headers.get('x-run'), got.headers.getSetCookie()]).toEqual([200, 'r1', ['a=1', 'b=2']])
    expect(await got.text()).toBe('Hello world')
  })

  test('its end is told once: when it was read', async () => {
    const { response } = create()
    const ended = Promise.withResolvers<void>()
    let times = 0
    onAnswerEnd(made(response), () => {
      times++
      ended.resolve()
    })
    const { url } = await listen(async () => response)
    expect(await (await fetch(url)).text()).toBe('Hello world')
    await ended.promise
    expect(times).toBe(1)
  })
})

test('once it was made real, it goes on as that one does', async () => {
  const { response } = create()
  const copy = response.clone()
  response.headers.set('x-late', 'yes')
  expect(realResponse(response).headers.get('x-late')).toBe('yes')
  const reader = response.body!.getReader()
  expect([response.ok, response.bodyUsed]).toEqual([true, false])
  reader.releaseLock()
  expect([await response.text(), await copy.text()]).toEqual(['Hello world', 'Hello world'])
})

test('its source is left if nobody gets its body: at HEAD, or with a head that cannot be sent', async () => {
  const { response, left } = create()
  const head = await withoutBody(response)
  expect([head.status, head.headers.get('x-run'), head.body, left.count]).toEqual([200, 'r1', null, 1])
  const read = create()
  expect(read.response.body).not.toBeNull()
  await withoutBody(read.response)
  expect(read.left.count).toBe(1)
  let cancelled = 0
  const source = { next: () => undefined, cancel: () => void cancelled++ }
  const { url } = await listen(async () => lightResponse({ 'x-bad': 'a\nb' }, source))
  await expect(fetch(url)).rejects.toThrow('fetch failed')
  expect(cancelled).toBe(1)
})

test('a client that leaves before the answer is ready leaves its source', async () => {
  const { response, left } = create()
  const asked = Promise.withResolvers<void>()
  const gone = Promise.withResolvers<void>()
  const { url, server } = await listen(async ({ signal }) => {
    signal.addEventListener('abort', () => gone.resolve())
    asked.resolve()
    await gone.promise
    return response
  })
  const leave = new AbortController()
  const fetched = fetch(url, { signal: leave.signal }).catch(() => undefined)
  await asked.promise
  leave.abort()
  await fetched
  await expect.poll(() => left.count).toBe(1)
  expect(server.listening).toBe(true)
})
