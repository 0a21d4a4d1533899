/** No text becomes code: not in the source, not in what a tool is given, and not in the schemas that servers send. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { evaluate } from '../src/tools/calculator.ts'

test('the source holds no eval and no Function constructor', () => {
  const root = new URL('../src', import.meta.url).pathname
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !/\.test\.ts$|(?:^|\/)testing\//u.test(name),
  )
  expect(files.length).toBeGreaterThan(100)
  const found = files.filter((name) => /\beval\(|\bFunction\(/u.test(readFileSync(join(root, name), 'utf8')))
  expect(found).toEqual([])
})

test.each(['constructor.constructor("return 1")()', 'globalThis', 'x => x', '[].at', '`1`', 'this'])(
  'the calculator refuses %s',
  (expression) => {
    expect(() => evaluate(expression)).toThrow()
  },
)
