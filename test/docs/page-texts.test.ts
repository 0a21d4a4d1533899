/** What the page says: read out of its source, and without words that we have another word for. `generated.test.ts` compares the list. */
import { describe, expect, test } from 'vitest'
import { pageTexts, textsIn } from '../../scripts/docs/page-texts.ts'

/** Why a text may not say this: the state words are running, waiting, completed, failed, stopped. */
const forbidden: readonly [RegExp, string][] = [
  [/\bidle\b/iu, 'say what it waits for, or nothing'],
  [/\bsuspended\b/iu, 'waiting'],
  [/\baborted\b/iu, 'stopped'],
  [/\bcancell?ed\b/iu, 'stopped'],
  [/^(open|done|finished|success|succeeded|pending)$/iu, 'one of the state words'],
  [/wants a (yes|no)|\bmay \S+ run\?/iu, 'Allow …?'],
  [/\blet go of\b/iu, 'clear'],
  [/\bsets? (?:.* )?to work\b/iu, 'starts'],
  [/\bpipeline\b/iu, 'YAML, or agent'],
  [/\bpayload\b|\bjournal\b|\bdelta\b/iu, 'a word of users'],
  [/\bplease\b|\boops\b|\bsorry\b|\bsuccessfully\b|!$/iu, 'nothing'],
  [/\bcopy as\b/iu, 'Code'],
  [/\be\.g\.|\bi\.e\.|\betc\b/iu, 'such as'],
  [/\.\.\.$/u, '…'],
  [/ {2}|\( | \)| [.,;:!?]/u, 'one space, and none before a sign'],
]

/** Each with its reason. */
const allowed = new Map([['done', 'Of a list of things to do in Markdown: the box is ticked.']])

describe('texts of the page', () => {
  test('say what they mean in the words that we use', () => {
    const found = pageTexts().flatMap(({ text, file }) =>
      forbidden.flatMap(([pattern, instead]) =>
        pattern.test(text) && !allowed.has(text) ? [`${file}: “${text}” → ${instead}`] : [],
      ),
    )
    expect(found).toEqual([])
  })

  test('are found wherever they stand: between tags, in labels, in choices and in sentences of the code', () => {
    const source = `
      const unused: 'Never shown' | 'Or this' = 'x'
      const states = { label: 'waiting' }
      export function Row({ n, name }: Props) {
        if (name === 'No such name') throw new Error('There is no such name.')
        return (
          <li className="a b" title={n === 1 ? 'one run' : \`\${n} runs\`}>
            Asked <b>{name}</b> {n > 1 && <small>Twice</small>}
            <Icon name="close" />
            {n > 2 ? 'often' : 'seldom'}
            <Empty title="Nothing here." />
          </li>
        )
      }`
    expect(textsIn('row.tsx', source)).toEqual([
      'waiting',
      'There is no such name.',
      'one run',
      '{n} runs',
      'Asked {name} {…} {often|seldom} {Empty}',
      'Twice',
      'Nothing here.',
    ])
  })
})
