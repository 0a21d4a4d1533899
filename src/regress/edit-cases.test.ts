/** One case of a file is changed, deleted or shown; the rest of the text stays as it is. */
import { describe, expect, test } from 'vitest'
import { caseText, withAnswer, withoutCase, withTools, withWritten, writtenCase } from './edit-cases.ts'
import { readCases } from './read-cases.ts'

const file = `# About the file.
agent: a
cases:
  # The first one.
  - name: one
    message: Hi
    expect:
      text:
        equals: |-
          # A heading

          - a list: of things
            and more
  - name: two
    message: Hi
    expect: { text: { equals: "84" } } # exactly

  - { name: three, turns: [{ message: a }, { message: b, expect: { text: { equals: 'it''s' } } }] }
  - name: four
    message: Hi
    expect:
      text:
        equals: >
          folded
          text
strict: true
`
const cases = (text: string) => readCases(text, 'a.yaml').cases
const names = (text: string) => cases(text).map(({ name }) => name)
const expected = (text: string, name: string) =>
  cases(text)
    .find((each) => each.name === name)!
    .turns.at(-1)!.expect.text?.equals

describe('withAnswer', () => {
  test.each(['one', 'two', 'three', 'four'])('%s expects the new answer, and the others what they did', (name) => {
    for (const answer of ['42', 'line 1\n\n  - "line": 2\n# 3\n', 'ä\u2028 \t"\\', '{ a: 1 }']) {
      const changed = withAnswer(file, 'a.yaml', name, answer)
      expect(expected(changed, name)).toEqual([answer])
      for (const other of ['one', 'two', 'three', 'four'].filter((each) => each !== name)) {
        expect(expected(changed, other), other).toEqual(expected(file, other))
      }
      for (const comment of ['# About the file.', '# The first one.', '# exactly', 'strict: true']) {
        expect(changed).toContain(comment)
      }
      // And back again.
      expect(expected(withAnswer(changed, 'a.yaml', name, 'once more'), name)).toEqual(['once more'])
    }
  })

  test.each(['text: hello', 'text: { contains: hello }', 'text: { equals: [a, b] }', 'outcome: failed'])(
    'a case with "%s" expects no exact answer, and says so',
    (expects) => {
      const text = `agent: a\ncases:\n  - { name: x, message: Hi, expect: { ${expects} } }\n`
      expect(() => withAnswer(text, 'a.yaml', 'x', '42')).toThrow(/x does not expect one exact answer/u)
    },
  )

  test('a value that two cases share is not changed for both', () => {
    const text = `agent: a
cases:
  - { name: x, message: Hi, expect: { text: { equals: &said hello } } }
  - { name: y, message: Hi, expect: { text: { equals: *said } } }
`
    for (const name of ['x', 'y']) {
      expect(() => withAnswer(text, 'a.yaml', name, '42')).toThrow(/does not expect one exact answer/u)
    }
  })
})

describe('withoutCase', () => {
  test.each(['one', 'two', 'three', 'four'])('%s is gone, the others and their comments stay', (name) => {
    const left = withoutCase(file, 'a.yaml', name)!
    expect(names(left)).toEqual(['one', 'two', 'three', 'four'].filter((each) => each !== name))
    expect(left).toContain('strict: true')
    expect(left.startsWith('# About the file.')).toBe(true)
  })

  test('the last one leaves nothing; a list in one line is refused', () => {
    const only = 'agent: a\ncases: [{ name: x, message: Hi }]\n'
    expect(withoutCase(only, 'a.yaml', 'x')).toBeUndefined()
    const flow = 'agent: a\ncases: [{ name: x, message: Hi }, { name: y, message: Hi }]\n'
    expect(() => withoutCase(flow, 'a.yaml', 'x')).toThrow(/a\.yaml is not written with one case below the other/u)
  })
})

test('the text of a case is its lines, without their indent', () => {
  expect(caseText(file, 'two', cases(file))).toBe(
    '- name: two\n  message: Hi\n  expect: { text: { equals: "84" } } # exactly',
  )
  expect(caseText(file, 'four', cases(file))).toMatch(/^- name: four\n[^]*\n {8}folded\n {8}text$/u)
})

const commented = `agent: a
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
    expect(withoutCase(commented, 'f.yaml', 'one')).toBe(`agent: a
cases:
  # About two,
  # and more.
  - name: two
    message: Hi
    expect: { text: { equals: Old } } # kept
`)
    expect(withoutCase(commented, 'f.yaml', 'two')).toBe(commented.slice(0, commented.indexOf('  # About two')))
  })

  test('an accepted answer is the only change', () => {
    expect(withAnswer(commented, 'f.yaml', 'two', 'no')).toBe(commented.replace('equals: Old }', 'equals: "no" }'))
    const crlf = withAnswer(commented.replaceAll('\n', '\r\n'), 'f.yaml', 'one', 'New')
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

describe('withTools', () => {
  const calls = [
    { name: 'add', input: { a: 1, text: 'it: "is"\n# x' } },
    { name: 'end', input: {} },
  ]
  const tools = '{ inOrder: true, only: true, calls: [{ name: old, input: { a: 2 } }] }'
  const written = `agent: a
cases:
  - name: one
    message: Hi
    expect:
      # About the calls.
      tools:
        inOrder: true
        only: true
        # Inside.
        calls:
          - name: old

      # About the steps.
      steps: [x]
  # About two.
  - name: two
    turns:
      - message: a
        expect: { text: b }
      - message: b
        expect:
          tools: ${tools} # gone with it
      # About the third.
      - message: c
        expect:
          tools:
            calls: [{ name: old }]
            inOrder: true
            only: true
strict: true
# The end.
`
  test.each([
    ['one', 0, ['# About the calls.', '\n\n      # About the steps.\n      steps: [x]\n  # About two.\n']],
    ['two', 1, ['  # About two.\n', '      # About the third.\n      - message: c\n']],
    ['two', 2, ['# gone with it', '\nstrict: true\n# The end.\n']],
  ])('%s expects other calls in turn %i; what is around them stays', (name, turn, stays) => {
    const changed = withTools(written, 'a.yaml', name, turn, calls)!
    const found = cases(changed).find((each) => each.name === name)!
    expect(found.turns[turn]!.expect.tools).toEqual({ inOrder: true, only: true, calls })
    for (const text of stays) expect(changed).toContain(text)
    const back = withWritten(changed, 'a.yaml', name, writtenCase(written, 'a.yaml', name))
    expect(back).toBe(written)
  })

  test('calls within a line are left to people', () => {
    const inLine = `agent: a\ncases:\n  - { name: one, message: Hi, expect: { tools: ${tools} } }\n`
    expect(withTools(inLine, 'a.yaml', 'one', 0, calls)).toBeUndefined()
    expect(withTools(written, 'a.yaml', 'two', 0, calls)).toBeUndefined()
  })
})
