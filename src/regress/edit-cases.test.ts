import { describe, expect, test } from 'vitest'
import { withAnswer, withoutCase } from './edit-cases.ts'

const file = `agent: a
cases:
  # About one.
  - name: one
    message: |
      Hi
      # no comment
    expect:
      text:
        equals: |
          Old
          text
  # About two,
  # and more.
  - name: two
    message: Hi
    expect: { text: { equals: Old } } # kept
`

describe('one case in the text of a file', () => {
  test('a deleted case takes its comments along, and leaves those of the next', () => {
    expect(withoutCase(file, 'f.yaml', 'one')).toBe(`agent: a
cases:
  # About two,
  # and more.
  - name: two
    message: Hi
    expect: { text: { equals: Old } } # kept
`)
    expect(withoutCase(file, 'f.yaml', 'two')).toBe(file.slice(0, file.indexOf('  # About two')))
  })

  test('an accepted answer is the only change', () => {
    expect(withAnswer(file, 'f.yaml', 'two', 'no')).toBe(file.replace('equals: Old }', 'equals: "no" }'))
    const crlf = withAnswer(file.replaceAll('\n', '\r\n'), 'f.yaml', 'one', 'New')
    expect(crlf).toContain('equals: "New"\r\n  # About two')
    expect(crlf.replaceAll('\r\n', '')).not.toContain('\n')
  })

  test('where several cases share an answer, none of them changes', () => {
    const shared = `agent: a
cases:
  - { name: one, message: Hi, expect: { text: { equals: &old Old } } }
  - { name: two, message: Hi, expect: { text: { equals: *old } } }
`
    for (const name of ['one', 'two']) expect(() => withAnswer(shared, 'f.yaml', name, 'New')).toThrow('Change it in')
    expect(() => withoutCase(shared, 'f.yaml', 'one')).toThrow('Delete the case there')
  })
})
