/** Every promise names a test, and every test that is named exists. */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readDocument } from './documents.ts'

const root = resolve(import.meta.dirname, '../..')
const promises = readDocument('docs/promises.md')
  .split('\n')
  .filter((line) => line.startsWith('- '))

describe('docs: promises', () => {
  test('every promise is linked to a test, and the test exists under that name', () => {
    expect(promises.length).toBeGreaterThan(50)
    // A page that people read: what users rely on. The rest is the tests themselves.
    expect(promises.length).toBeLessThanOrEqual(80)
    const faults: string[] = []
    const seen = new Set<string>()
    for (const line of promises) {
      const [promise, shown = ''] = line.slice(2).split(' — [')
      const links = [...`[${shown}`.matchAll(/\[([^\s\]]+) › ((?:[^\]]|\](?!\())+)\]\(\.\.\/([^)]+)\)/gu)]
      if (seen.has(promise!)) faults.push(`promised twice: ${promise}`)
      seen.add(promise!)
      // What is left between the links may only be the semicolons.
      const rest = links.reduce((text, [link]) => text.replace(link, ''), `[${shown}`)
      if (links.length === 0 || !/^(; )*$/u.test(rest)) faults.push(`no test, or none that can be read: ${promise}`)
      for (const [, file, name, target] of links) {
        if (file !== target) faults.push(`${file} is linked to ${target}`)
        else if (!hasTest(file!, name!)) faults.push(`${file} has no test "${name}"`)
      }
    }
    expect(faults).toEqual([])
  })

  test('a test that is not there would be missed', () => {
    expect(hasTest('test/docs/promises.test.ts', 'a test that is not there would be missed')).toBe(true)
    expect(hasTest('test/docs/promises.test.ts', 'no such test')).toBe(false)
    expect(hasTest('test/docs/nothing.test.ts', 'a test that is not there would be missed')).toBe(false)
  })
})

/** The name must be what `test(…)` or `test.each(…)(…)` is called with, not merely stand somewhere in the file. */
function hasTest(file: string, name: string): boolean {
  if (!/\.(test|contract)\.tsx?$/u.test(file) || !existsSync(resolve(root, file))) return false
  const source = readFileSync(resolve(root, file), 'utf8')
  const quoted = ["'", '"', '`'].map((quote) => `(${quote}${name}${quote}`)
  // The formatter may put a name on the line below its parenthesis.
  return quoted.some((text) => source.replaceAll(/\(\s+/gu, '(').includes(text))
}
