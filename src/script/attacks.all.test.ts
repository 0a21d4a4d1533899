import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { forgeries, nativeLoops, recursions, replacements } from './testing/attacks.ts'

interface Outcome {
  value?: unknown
  error?: string
  calls: string[]
  console: string[]
}
interface Report {
  results: Record<'recursions' | 'replacements' | 'forgeries' | 'nativeLoops', Record<string, Outcome>>
  victims: { done: number; wrong: number }
  isPolluted: boolean
}

/** In a process of its own: if an attack succeeds, it is that process which hangs or dies. */
const report = (async () => {
  const file = fileURLToPath(new URL('testing/attack-process.ts', import.meta.url))
  const child = spawn(process.execPath, ['--no-warnings', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 400_000,
    killSignal: 'SIGKILL',
  })
  return JSON.parse(await text(child.stdout)) as Report
})()

describe('attacks', { timeout: 420_000 }, () => {
  test('none hangs or ends the process, and harmless scripts beside them get their right results', async () => {
    const { victims, isPolluted, results } = await report
    expect(Object.keys(results.nativeLoops)).toEqual(Object.keys(nativeLoops))
    expect(victims.done).toBeGreaterThan(10)
    expect([victims.wrong, isPolluted]).toEqual([0, false])
  })

  test('recursion is an error that a script can catch', async () => {
    const { results } = await report
    const values = Object.entries(results.recursions).map(([name, { value }]) => [name, value])
    expect(values).toEqual(
      Object.keys(recursions).map((name) => [name, name === 'pattern' ? 'SyntaxError' : 'RangeError']),
    )
  })

  test('a script that replaces what the code around it uses gets the same as others', async () => {
    const { results } = await report
    const right = { value: { got: 7, list: [1, 2] }, console: ['a {"b":1}'] }
    expect(results.replacements).toEqual(
      Object.fromEntries(
        Object.keys(replacements).map((name) => {
          const calls =
            name === 'descriptors' ? ['1 tool search {}', '2 tool orders {"id":7}'] : ['1 tool orders {"id":7}']
          return [name, { ...right, calls }]
        }),
      ),
    )
  })

  test('what a script forges is its own value and nothing else', async () => {
    const { results } = await report
    const found = Object.fromEntries(
      Object.entries(results.forgeries).map(([name, { value, error }]) => [name, error ?? value]),
    )
    expect(Object.keys(found)).toEqual(Object.keys(forgeries))
    const forged = JSON.parse(
      '{ "__proto__": { "polluted": true }, "constructor": { "prototype": { "polluted": true } } }',
    ) as object
    expect(JSON.stringify(found['proto'])).toBe(JSON.stringify(forged))
    expect(JSON.stringify(found['protoCall'])).toBe('{"__proto__":{"polluted":true}}')
    expect(found).toMatchObject({
      toJson: 'mine',
      thenAll: 'mine',
      literal: { a: true },
      raw: 'a\u0000',
      state: { state: 'done', value: '1', id: 1, isBroken: true },
      messages: [],
      callers: [],
      callSites: 0,
      sharedCalls: [1, 2, true, 'TypeError', 'TypeError'],
      notTools: Array.from({ length: 5 }, () => 'TypeError'),
      closed: 'bad-script',
      closedTwice: 'bad-script',
      source: false,
      strict: [true, true, 'undefined'],
      lone: '\ud800',
      nul: 'a\u0000b',
      huge: 1000,
      lateCalls: 1,
    })
    expect(results.forgeries['nul']?.console).toEqual(['a\u0000b'])
  })

  test('what computes for long or takes much ends by a limit, or by an error of its own', async () => {
    const { results } = await report
    const odd = Object.entries(results.nativeLoops).filter(
      ([, { error }]) => error !== 'script-timeout' && error !== 'script-memory' && error !== 'script-error',
    )
    // Fast enough.
    expect(odd.map(([name]) => name).filter((name) => name !== 'normalize')).toEqual([])
  })
})
