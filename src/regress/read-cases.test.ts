import { describe, expect, test } from 'vitest'
import { formatFaults, PipelineError } from '../pipeline/parse.ts'
import { readCases, slugOf } from './read-cases.ts'

function faultsIn(text: string): string[] {
  try {
    readCases(text, 't.yaml')
  } catch (error) {
    if (error instanceof PipelineError) return formatFaults('t.yaml', error.faults).split('\n')
    throw error
  }
  return []
}

describe('test cases', () => {
  test('values keep the types that they have in YAML, and a dollar sign is a dollar sign', () => {
    const { agent, models, timeout, cases } = readCases(
      `agent: a
models: [x:1, y]
timeout: 2s
cases:
  - name: all
    message: $input costs 5
    input: { n: 5, s: "5", yes: true, none: null, deep: [{ a: 1.5 }] }
    tools: live
    answers:
      - { tool: pay, approve: true, input: { amount: 3 } }
      - { approve: false, reason: no }
      - { tool: where, output: { town: Ghent } }
      - { tool: where, error: "no GPS" }
      - { value: 7 }
      - { cancel: true }
    expect:
      text: { contains: 5, matches: ["^a", "b$"], not: { equals: x } }
      json: { "items[0].price": 5, $: { a: "5" } }
      tools: [{ name: pay, input: { amount: 3 }, times: 0 }]
      steps: { ran: [a], skipped: [b] }
      judge: { agent: critic, threshold: 0.5 }
`,
      't.yaml',
    )
    expect({ agent, models, timeout }).toEqual({ agent: 'a', models: ['x:1', 'y'], timeout: 2000 })
    const [{ turns, ...rest }] = cases as [(typeof cases)[0]]
    expect(rest).toEqual({ name: 'all', slug: 'all', line: 5, strict: false, tools: 'live' })
    const none = { contains: [], matches: [], equals: [] }
    expect(turns).toEqual([
      {
        input: {
          n: 5,
          s: '5',
          yes: true,
          none: null,
          deep: [{ a: 1.5 }],
          messages: [{ role: 'user', content: '$input costs 5' }],
        },
        answers: [
          { tool: 'pay', kind: 'approval', approved: true, input: { amount: 3 } },
          { kind: 'approval', approved: false, reason: 'no' },
          { tool: 'where', kind: 'tool', output: { town: 'Ghent' } },
          { tool: 'where', kind: 'tool', output: 'no GPS', isError: true },
          { kind: 'input', value: 7 },
          { kind: 'input', cancelled: true },
        ],
        expect: {
          outcome: 'completed',
          text: { contains: ['5'], matches: ['^a', 'b$'], equals: [], not: { ...none, equals: ['x'] } },
          json: [
            ['items[0].price', 5],
            ['$', { a: '5' }],
          ],
          tools: { inOrder: false, only: false, calls: [{ name: 'pay', input: { amount: 3 }, times: 0 }] },
          steps: { ran: ['a'], skipped: ['b'] },
          judge: { agent: 'critic', threshold: 0.5 },
        },
      },
    ])
  })

  test('an expected error means a failed run; what a case does not say is that of its file', () => {
    const file = readCases(
      'agent: a\nstrict: true\ncases: [{ name: x, message: m, expect: { error: boom } }]',
      't.yaml',
    )
    expect(file.cases[0]).toMatchObject({ strict: true, tools: 'recorded' })
    expect(file.cases[0]!.turns[0]!.expect).toEqual({ outcome: 'failed', error: 'boom' })
  })

  const one = 'agent: a\ncases:\n  - '

  test.each([
    ['', ['t.yaml:1:1 the file is empty; it needs "agent:" and "cases:"']],
    ['agent: a\ncase: []', ['unknown key "case" (did you mean "cases"?)']],
    ['agent: a\ncases: []', ['t.yaml:2:8 "cases" has no cases; add one: - { name: "says hello", message: "Hello" }']],
    [`${one}{ name: x }`, ['t.yaml:3:5 missing key "message" (or "input"); add it']],
    [`${one}{ message: x }`, ['t.yaml:3:5 missing key "name"; add it']],
    [`${one}{ name: x, message: m, expct: {} }`, ['3:28 unknown key "expct" (did you mean "expect"?)']],
    [`${one}{ name: x, message: m, expect: { txt: a } }`, ['3:38 unknown key "txt" (did you mean "text"?)']],
    [
      `${one}{ name: x, message: m, expect: { text: { contians: a } } }`,
      ['unknown key "contians" (did you mean "contains"?)'],
    ],
    [
      `${one}{ name: x, message: m, expect: { outcome: complete } }`,
      ['must be one of completed, failed', '(did you mean "completed"?)'],
    ],
    [
      `${one}{ name: x, message: m, expect: { text: { matches: "(" } } }`,
      ['3:55 "(" is not a valid regular expression'],
    ],
    [
      `${one}{ name: x, message: m, expect: { json: { "a..b": 1 } } }`,
      ['"a..b" is not a path; write names and indexes: items[0].price'],
    ],
    [
      `${one}{ name: x, message: m, expect: { budget: { tokens: many } } }`,
      ['"tokens" must be a whole number from 0, not "many"'],
    ],
    [
      `${one}{ name: x, message: m, answers: [{ tool: t }] }`,
      ['an answer needs exactly one of the keys approve, output, error, value, cancel; it has none'],
    ],
    [
      `${one}{ name: x, message: m, answers: [{ output: 1, reason: no }] }`,
      ['only an answer with "approve" may have "reason" or "input"; remove it'],
    ],
    [
      `${one}{ name: x, message: m, turns: [{ message: n }] }`,
      ['3:16 "message" belongs into one of the turns; move it there'],
    ],
    [`${one}{ name: x, input: [1] }`, ['"input" must be a map']],
    [`${one}{ name: x, message: m, input: { messages: [] } }`, ['"input" has messages already; remove "message"']],
    [`${one}{ name: x, message: m }\n  - { name: x, message: n }`, ['4:13 there is another case "x"; rename one']],
    [
      `${one}{ name: x y, message: m }\n  - { name: X-y, message: n }`,
      ['"X-y" and "x y" would share the recording x-y; rename one'],
    ],
    [`${one}{ name: x, message: m, tools: fake }`, ['"tools" must be one of recorded, live']],
  ])('%j is refused at its place', (text, parts) => {
    const faults = faultsIn(text)
    expect(faults).toHaveLength(1)
    for (const part of parts) expect(faults[0]).toContain(part)
  })

  test('all faults are told at once', () => {
    expect(faultsIn('agnt: a\ncases:\n  - { name: x }\n  - { nam: y, message: m }')).toHaveLength(2)
  })

  test('names of files are safe, whatever a case is called', () => {
    expect(slugOf('../../etc/passwd')).toBe('etc-passwd')
    expect(slugOf('Größe: 5 €?')).toBe('größe-5')
    expect(slugOf('???')).toBe('case')
    expect(slugOf('x'.repeat(500))).toHaveLength(60)
    expect(slugOf('漢'.repeat(500))).toHaveLength(60)
    expect(Buffer.byteLength(slugOf('𠀀'.repeat(500)))).toBe(180)
  })
})
