/** Whatever a door lets out says what it is. */
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const src = resolve(import.meta.dirname, '../../src')
const doors = readdirSync(src).filter((name) => name.endsWith('.ts'))

interface Exported {
  door: string
  name: string
  file: string
}

function exportsOf(door: string): Exported[] {
  const text = readFileSync(resolve(src, door), 'utf8')
  return [...text.matchAll(/export (?:type )?(\{[^}]*\}|\*) from '\.\/([^']+)'/gu)].flatMap(([, what, file]) => {
    const names =
      what === '*'
        ? [...readFileSync(resolve(src, file!), 'utf8').matchAll(/^export (?:type|interface) (\w+)/gmu)].map(
            ([, n]) => n!,
          )
        : what!.slice(1, -1).split(',')
    return names
      .map((name) => name.trim().replace(/^type | as .*$/gu, ''))
      .filter((name) => name !== '')
      .map((name) => ({ door, name, file: file! }))
  })
}

/** The lines right above the declaration, in the file itself or where that file has it from. */
function isDocumented({ name, file }: Exported): boolean {
  const text = readFileSync(resolve(src, file), 'utf8')
  const again = new RegExp(`export (?:type )?\\{[^}]*\\b${name}\\b[^}]*\\} from '([^']+)'`, 'u').exec(text)
  if (again !== null) return isDocumented({ door: '', name, file: resolve(src, file, '..', again[1]!) })
  const declaration = new RegExp(
    `^export (?:async )?(?:const|function\\*?|class|interface|type) ${name}\\b`,
    'mu',
  ).exec(text)
  if (declaration === null) throw new Error(`${file} does not declare ${name}`)
  return text.slice(0, declaration.index).endsWith('*/\n')
}

describe('public doors', () => {
  test('every export of a door has a docstring', () => {
    const all = doors.flatMap(exportsOf)
    expect(all.length).toBeGreaterThan(90)
    const bare = all.filter((each) => !isDocumented(each)).map(({ door, name, file }) => `${door}: ${name} (${file})`)
    expect([...new Set(bare)]).toEqual([])
  })
})
