import { globSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { StepChange } from '../part/agent-settings.ts'
import { changeSettings, placesOf } from './change-settings.ts'
import { parsePipeline } from './parse.ts'

const file = `# Our poet.
metadata: { name: Poet }

workflow:
  - id: answer # the one
    type: llm
    config:
      # Cheap.
      model: "demo:assistant" # not the big one
      stream: true

      tools:
        - calculator # sums
        # Also this.
        - { name: search, approval: true }
      system: |
        You are a poet.

        Be brief.
after:
  - { id: note, type: llm, config: { model: demo:assistant, temperature: 0.5, tools: [a, b] } }
`
const change = (more: Omit<StepChange, 'step'>, step = 'main/answer', text = file) =>
  changeSettings(text, [{ step, ...more }])
/** The lines that differ, as a diff has them. */
const diff = (after: string, before = file) => {
  const [a, b] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let [endA, endB] = [a.length, b.length]
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--
    endB--
  }
  return [...a.slice(start, endA).map((each) => `-${each}`), ...b.slice(start, endB).map((each) => `+${each}`)]
}

describe('changes of settings in the text of an agent', () => {
  test.each<[string, Omit<StepChange, 'step'>, string[]]>([
    [
      'a model keeps its quotes and its comment',
      { model: 'demo:other' },
      [`-      model: "demo:assistant" # not the big one`, `+      model: "demo:other" # not the big one`],
    ],
    ['a new setting stands behind the model', { temperature: 0.2 }, ['+      temperature: 0.2']],
    [
      'a prompt in lines stays one',
      { system: 'You are a cook.\n  Salt it.\n' },
      ['-        You are a poet.', '-', '-        Be brief.', '+        You are a cook.', '+          Salt it.'],
    ],
    [
      'a prompt of one line, without the line break',
      { system: 'Brief: yes # no' },
      [
        '-      system: |',
        '-        You are a poet.',
        '-',
        '-        Be brief.',
        '+      system: |-',
        '+        Brief: yes # no',
      ],
    ],
    ['a tool goes', { tools: { calculator: false } }, ['-        - calculator # sums']],
    ['a tool comes', { tools: { weather: true } }, ['+        - weather']],
    ['what is so already changes nothing', { model: 'demo:assistant', tools: { search: true, other: false } }, []],
    [
      'all tools go',
      { tools: { calculator: false, search: false } },
      [
        '-      tools:',
        '-        - calculator # sums',
        '-        # Also this.',
        '-        - { name: search, approval: true }',
        '+      tools: []',
      ],
    ],
    ['no model', { model: null }, [`-      model: "demo:assistant" # not the big one`]],
    ['no prompt', { system: null }, ['-      system: |', '-        You are a poet.', '-', '-        Be brief.']],
  ])('%s', (_, changes, expected) => {
    const after = change(changes)
    expect(diff(after)).toEqual(expected)
    if (changes.model !== null) parsePipeline(after)
  })

  test('in one line', () => {
    const note = (more: Omit<StepChange, 'step'>) => diff(change(more, 'after/note'))[1]
    expect(note({ model: 'a, b', temperature: null, system: 'Two\nlines', tools: { a: false, c: true } })).toBe(
      String.raw`+  - { id: note, type: llm, config: { model: "a, b", system: "Two\nlines", tools: [b, c] } }`,
    )
    expect(note({ tools: { b: false } })).toContain('tools: [a] }')
    expect(note({ tools: { a: false, b: false } })).toContain('tools: [] }')
  })

  test('a step without config gets one; steps inside containers have their own places', () => {
    const text = `workflow:
  - id: both
    type: parallel
    config:
      branches:
        left: [{ id: ask, type: llm }]
        right:
          - id: ask
            type: llm
`
    const changed = changeSettings(text, [
      { step: 'main/both/left/ask', model: 'm:1' },
      { step: 'main/both/right/ask', tools: { a: true } },
    ])
    expect(diff(changed, text)).toEqual([
      '-        left: [{ id: ask, type: llm }]',
      '-        right:',
      '-          - id: ask',
      '-            type: llm',
      '+        left: [{ id: ask, type: llm, config: { model: m:1 } }]',
      '+        right:',
      '+          - id: ask',
      '+            type: llm',
      '+            config: { tools: [a] }',
    ])
    expect(() => change({ model: 'x' }, 'main/no', text)).toThrow(
      'The agent has no step "main/no"; its steps: main/both, main/both/left/ask, main/both/right/ask',
    )
  })

  test('other layouts: Windows lines, a prompt file, a list of models, the last line without an end', () => {
    const windows = 'workflow:\r\n  - id: a\r\n    type: llm\r\n    config:\r\n      model: x:1\r\n      stream: true'
    expect(change({ temperature: 1, system: 'A\nB' }, 'main/a', windows)).toBe(
      windows.replace('x:1\r\n', 'x:1\r\n      temperature: 1\r\n      system: |-\r\n        A\r\n        B\r\n'),
    )
    const other = `workflow:
- id: a
  type: llm
  config:
    system: { file: prompts/poet.md } # ours
    model: [x:1, y:2]
    tools:
    - mcp: shop
      tools: [buy]
    - { agent: poet, as: rhyme }
    - code: [a]`
    expect(diff(change({ system: 'Hi', model: 'z:1' }, 'main/a', other), other)).toEqual([
      '-    system: { file: prompts/poet.md } # ours',
      '-    model: [x:1, y:2]',
      '+    system: Hi # ours',
      '+    model: z:1',
    ])
    const without = change({ tools: { 'mcp:shop': false, runCode: false } }, 'main/a', other)
    expect(diff(without, other)).toEqual([
      '-    - mcp: shop',
      '-      tools: [buy]',
      '-    - { agent: poet, as: rhyme }',
      '-    - code: [a]',
      '+    - { agent: poet, as: rhyme }',
      '+',
    ])
    expect(change({ tools: { rhyme: false, b: true } }, 'main/a', other)).toMatch(/- code: \[a\]\n {4}- b$/u)
  })

  test('what cannot be changed without harm is refused', () => {
    const shared = `workflow:
  - { id: a, type: llm, config: { model: &m x:1 } }
  - { id: b, type: llm, config: { model: *m } }
`
    expect(() => change({ model: 'y:1' }, 'main/a', shared)).toThrow('edit the file')
    expect(diff(change({ model: 'y:1' }, 'main/b', shared), shared)[1]).toContain('config: { model: y:1 }')
    expect(() => change({ model: 'x' }, 'main/a', 'workflow: [')).toThrow(/^The file has a mistake in line 1: /u)
  })

  test('any prompt is what was written', () => {
    const prompts = [
      ' x',
      '\n',
      '\n\nx',
      'x\n\n',
      '\tx',
      'a: b\n- c',
      '"',
      "'",
      '#',
      '| x',
      '$input.name',
      'ü 🙂',
      '{a}',
      'x\r\ny',
      '---',
      '  a\n b\n',
      'x \n y',
    ]
    for (const step of ['main/answer', 'after/note']) {
      for (const system of prompts) {
        const { workflow, after } = parsePipeline(change({ system }, step))
        const { config } = [...workflow, ...after].find(({ id }) => step.endsWith(`/${id}`))!
        expect((config as { system: string }).system).toBe(system)
      }
    }
  })

  test('where the changed settings stand', () => {
    expect(placesOf(file, [{ step: 'main/answer', model: 'x', tools: {}, temperature: 1 }])).toEqual([
      { step: 'main/answer', setting: 'model', from: 9, to: 9 },
      { step: 'main/answer', setting: 'tools', from: 12, to: 15 },
    ])
  })

  test('a comment of many signs behind an anchor costs no time', () => {
    const text = `x: &v docs ${'#,'.repeat(5000)}
workflow:
  - id: answer
    type: llm
    config:
      tools:
        - { mcp: *v }
`
    expect(() => changeSettings(text, [{ step: 'main/answer', tools: { calculator: true } }])).toThrow('edit the file')
  })

  test('the agents of this repository can all be changed, step by step', () => {
    const files = globSync('{agents,examples/*/agents}/*.{yaml,yml}')
    const changes = [
      { model: 'x:y' },
      { model: null },
      { temperature: 0.3 },
      { temperature: null },
      { system: 'Two\nlines\n' },
      { system: null },
      { tools: { other: true } },
    ]
    let count = 0
    for (const file of files) {
      const text = readFileSync(file, 'utf8')
      const { workflow } = parsePipeline(text, undefined, () => 'A prompt.')
      for (const { id, type, config } of workflow) {
        if (type !== 'llm') continue
        const off = Object.fromEntries(config.tools.map(({ name }) => [name, false]))
        for (const each of [...changes, { tools: off }]) {
          const after = changeSettings(text, [{ step: `main/${id}`, ...each }])
          expect([file, comments(after)]).toEqual([file, comments(text)])
          count++
        }
      }
    }
    expect(count).toBeGreaterThan(40)
  })
})

/** Those with a line of their own. */
function comments(text: string): string[] {
  return text.match(/^\s*#.*$/gmu) ?? []
}
