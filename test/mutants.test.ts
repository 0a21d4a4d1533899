/** The list of mutants (`npm run mutants`) fits the source as it is. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { applyMutant, readList } from '../scripts/mutants/mutant.ts'

const root = resolve(import.meta.dirname, '..')
const { mutants, rejected } = readList()

test('each mutant is found once in its file, changes it and was not rejected', () => {
  for (const mutant of mutants) {
    const text = readFileSync(resolve(root, mutant.file), 'utf8')
    expect(applyMutant(text, mutant), mutant.id).not.toBe(text)
  }
  const changeOf = ({ file, original, replacement }: (typeof rejected)[number] | (typeof mutants)[number]) =>
    [file, original, replacement].join('\n')
  const changes = [...mutants, ...rejected].map(changeOf)
  expect(new Set(changes).size).toBe(changes.length)
  expect(new Set(mutants.map(({ id }) => id)).size).toBe(40)
})

test('a mutant changes its own lines alone; one whose lines are gone, or there twice, is named', () => {
  const mutant = {
    id: 'some-mutant',
    file: 'src/a.ts',
    original: 'if (a < b) return',
    replacement: 'if (a <= b) return',
  }
  expect(applyMutant('let a\nif (a < b) return\nif (a) return\n', mutant)).toBe(
    'let a\nif (a <= b) return\nif (a) return\n',
  )
  // What looks like a pattern of String.replace is text.
  expect(applyMutant('if (a < b) return', { ...mutant, replacement: "'$&'" })).toBe("'$&'")
  expect(() => applyMutant('if (a > b) return', mutant)).toThrow(
    'mutant some-mutant: its text is not there in src/a.ts. Write its lines anew, or replace it: see "Mutants" in CONTRIBUTING.md.',
  )
  expect(() => applyMutant('if (a < b) return\nif (a < b) return', mutant)).toThrow(
    'is there more than once in src/a.ts',
  )
})
