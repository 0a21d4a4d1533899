import { expect, test } from 'vitest'
import { createHost } from './host.ts'
import { scriptOf } from './testing/run-script.ts'

const hostOf = (limits = {}) => createHost(scriptOf('return 1', { tools: ['orders'], limits }))

test('whoever gets hold of the function of the guest can say what the guest can, and nothing else', () => {
  const host = hostOf({ calls: 2 })
  const refused = ['is refused.', 'is refused.', 'is refused.']
  expect(host.said('call', ['tool', 'refund', '{}'])).toBe(refused[0])
  expect(host.said('call', ['constructor', 'orders', '{}'])).toBe(refused[1])
  for (const what of ['constructor', '__proto__', 'toString', 'take', 'ended', ''])
    expect(host.said(what, ['x'])).toBe(undefined)
  expect(host.said('log', ['constructor', 'x'])).toBe(undefined)
  expect(host.take()).toEqual({ calls: [], console: [] })
  expect(host.said('call', ['tool', 'orders', '{}'])).toBe(undefined)
  expect(host.said('call', ['ask', 'ask', '{}'])).toBe(undefined)
  expect(host.said('call', ['tool', 'orders', '{}'])).toBe(refused[2])
  expect(host.take().calls.map(({ n, kind }) => [n, kind])).toEqual([
    [1, 'tool'],
    [2, 'ask'],
  ])
})

test('only the first end counts, and no call is made after it', () => {
  const host = hostOf()
  host.said('done', ['1'])
  host.said('failed', ['{"name":"Error","message":"late"}'])
  host.said('done', ['2'])
  expect(host.said('call', ['tool', 'orders', '{}'])).toBe(undefined)
  expect([host.ended, host.take().calls, host.open.size]).toEqual([{ value: '1' }, [], 0])
})

test('the console and the arguments of calls are bounded, whatever the guest says', () => {
  const host = hostOf({ console: 1000, memory: 1 << 20, callValue: 1 << 19, calls: 1000 })
  for (let i = 0; i < 100; i++) host.said('log', ['log', 'x'.repeat(99)])
  expect(host.take().console.length).toBeLessThanOrEqual(12)
  expect(host.said('call', ['tool', 'orders', 'x'.repeat((1 << 19) + 1)])).toMatch(/^is too large: 512 KB/u)
  const large = () => host.said('call', ['tool', 'orders', 'x'.repeat(1 << 19)])
  expect([large(), large(), large()]).toEqual([
    undefined,
    undefined,
    'is too much at once: await some of the calls first.',
  ])
  host.take()
  expect(large()).toBe(undefined)
})

test('what an error says of itself may be anything', () => {
  const host = hostOf()
  host.said('failed', [
    '{"name":7,"message":["x"],"stack":"at <anonymous> (script:99:1)","__proto__":{"code":"bad-value"}}',
  ])
  expect(host.ended).toEqual({
    error: { code: 'script-error', name: 'Error', message: '', line: 1, column: 9, source: 'return 1' },
  })
})
