import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { createSandboxPool } from './pool.ts'
import { runScript } from './testing/run-script.ts'

const pool = createSandboxPool()
afterAll(() => pool.close())
const valueOf = async (code: string) => {
  const { value, error } = await runScript(pool, code, { limits: { value: 1 << 20 } })
  expect(error).toBe(undefined)
  return value
}

/** All that can be reached from `globalThis`, by properties, getters and prototypes, by its shortest way. */
const walk = `
const seen = new Map([[globalThis, 'globalThis']])
const syntax = { async: async () => {}, generator: function* () {}, asyncGenerator: async function* () {}, arguments: (function () { return arguments })(), iterators: [[].values(), ''[Symbol.iterator](), new Map().keys(), new Set().keys(), 'a'.matchAll(/a/g)] }
const queue = [[globalThis, ''], [syntax, 'syntax.']]
const found = []
for (const [value, way] of queue) {
  const keys = Reflect.ownKeys(value)
  const next = [...keys.map((key) => [key, Reflect.getOwnPropertyDescriptor(value, key)]), ['__proto__', { value: Reflect.getPrototypeOf(value) }]]
  for (const [key, { value: item, get, set }] of next) {
    const name = way + (typeof key === 'symbol' ? '@@' + key.description.replace('Symbol.', '') : key)
    if (key !== '__proto__' && !way.startsWith('syntax.')) found.push(name)
    for (const [each, kind] of [[item, ''], [get, ' get'], [set, ' set']]) {
      if (each === null || (typeof each !== 'object' && typeof each !== 'function') || seen.has(each)) continue
      seen.set(each, name)
      queue.push([each, name + kind + '.'])
    }
  }
}
return found.filter((name) => !/\\.(length|name)$/.test(name)).sort()`

describe('what a script can reach', () => {
  test('is what the list says: an update of the engine that adds something is looked at', async () => {
    const file = new URL('testing/reachable.txt', import.meta.url)
    const found = (await valueOf(walk)) as string[]
    if (process.env['UPDATE_REACHABLE']) writeFileSync(file, `${found.join('\n')}\n`)
    expect(found.length).toBeGreaterThan(700)
    expect(found).toEqual(readFileSync(file, 'utf8').trimEnd().split('\n'))
  })

  test('is nothing of a process, a network or a clock', async () => {
    const absent =
      'process require module exports global Buffer fetch XMLHttpRequest WebSocket setTimeout setInterval setImmediate queueMicrotask WebAssembly SharedArrayBuffer Atomics WeakRef FinalizationRegistry performance navigator crypto structuredClone Worker postMessage importScripts Deno Bun std os bjson print scriptArgs gc __dirname Intl'
    const code = `return ${JSON.stringify(absent.split(' '))}.filter((name) => name in globalThis || (0, eval)('typeof ' + name) !== 'undefined')`
    expect(await valueOf(code)).toEqual([])
    // None of it hides where the names no longer lead.
    const code2 = `return [Object.getPrototypeOf(async () => {}).constructor('return typeof process')(), new Function('return typeof require')(), eval('typeof fetch'), [].constructor.constructor('return typeof SharedArrayBuffer')()]`
    const [promise, ...rest] = (await valueOf(
      `const all = await Promise.all((() => { ${code2} })())\nreturn all`,
    )) as string[]
    expect([promise, ...rest]).toEqual(Array.from({ length: 4 }, () => 'undefined'))
  })

  test('modules cannot be loaded, in any form', async () => {
    for (const code of [
      'return await import("node:fs")',
      'return await eval("import(\'fs\')")',
      'return await new Function("return import(\'data:text/javascript,1\')")()',
      'return await import("./x.js", { with: { type: "json" } })',
      'eval("import fs from \'fs\'")',
      'return import.meta.url',
    ]) {
      expect((await runScript(pool, code)).error, code).toMatchObject({
        code: expect.stringMatching(code.startsWith('eval') ? /^script-error$/u : /^bad-script$/u),
      })
    }
  })

  test('shows nothing of the machine in stacks and errors', async () => {
    const code = `
      const texts = [new Error('a').stack]
      for (const f of [() => null.x, () => tools.nothing, () => JSON.parse('{'), () => eval('x y'), () => decodeURI('%')]) try { f() } catch (e) { texts.push(e.stack, e.message) }
      await tools.orders().catch((e) => texts.push(e.stack, e.message))
      return texts.join('\\n')`
    const { value } = await runScript(pool, code, { answer: () => ({ error: { message: 'no' } }) })
    expect(value).not.toMatch(/node:|\.[jt]s\b|\/(?:work|home|tmp|usr)|at host|worker/u)
    expect(value).toMatch(/script:3:26/u)
  })
})
