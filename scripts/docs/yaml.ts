/** docs/yaml.md: every key out of the schemas that the parser checks with, and `$` and conditions as they really come out. */
import { describeKeys } from '../../src/pipeline/agent-schema.ts'
import { evaluate, resolve, type Scope } from '../../src/pipeline/evaluate.ts'
import { parseExpression } from '../../src/pipeline/expression.ts'
import { stepTypes } from '../../src/pipeline/step-types.ts'
import { code, markdownTable } from './table.ts'

const scope: Scope = {
  input: { topic: 'mills', count: 3, user: { name: 'Ada' } },
  variables: new Map<string, unknown>([
    ['draft', { text: 'Mills grind.', score: 4 }],
    ['notes', ['old', 'wet']],
  ]),
  env: { REGION: 'eu' },
  user: { id: 'u1', roles: ['user'], claims: { plan: 'pro' } },
}
const written = [
  '$input.topic',
  '$input.count',
  '$input.user',
  '$notes.0',
  '$draft.text',
  '$stepResult.draft.score',
  '$env.REGION',
  '$user.id',
  '$user.claims.plan',
  '$user.name?',
  'About $input.topic: $draft.text',
  'Notes: $notes',
  '$draft.advice?',
  'Advice: $draft.advice?',
  '$draft.advice',
  '$$input',
  'costs $5, or $100',
]
const expressions = [
  '$draft.score < 5',
  '$draft.score == 4 and not $input.fast?',
  '$input.topic in ["mills", "ships"]',
  '$notes contains "wet"',
  '$draft.text contains "grind"',
  'empty $draft.advice?',
  '$input.count == "3"',
  '$input.topic < 5',
  '$draft.text',
  '($input.count > 5 or $input.count < 1) or true',
]

export function yamlDoc(): string {
  const rows = describeKeys()
  const at = (place: string) => rows.filter((row) => row.place === place)
  const ofModels = at('llm').filter((row) => at('router').some((other) => isSame(row, other)))
  // Each table has only what no earlier one has: `budget` and `timeouts` are in many places, and most keys of `llm` in `router`.
  const keysOf = (place: string) => {
    const before = place === 'file' || place === 'shape' ? [] : at('file').filter(({ key }) => key.includes('.'))
    const shared = place === 'llm' || place === 'router' ? ofModels : []
    return tableOf(at(place).filter((row) => ![...before, ...shared].some((other) => isSame(row, other))))
  }
  const sections = [...stepTypes].map(([type, { about }]) => {
    const more = type === 'llm' || type === 'router' ? ` Also the keys of [every model call](#every-model-call).` : ''
    return `### \`${type}\`\n\n${about}${more}\n\n${keysOf(type)}`
  })
  return `# An agent file, key by key

This is the reference; [Writing agents](agents.md) is the guide. An unknown key is an error that suggests the key you probably meant. Editors show this page: \`millrace schema\` prints it as JSON Schema, and the first
line of an agent (\`# yaml-language-server: $schema=./millrace.schema.json\`) points to it.

- Types come from this page: quoting a scalar does not change its value.
- A duration is a number of milliseconds or a text such as \`30s\`, \`5m\`, \`1.5h\`.
- \`list of step\` and \`shape\` are described in [Every step](#every-step) and [Shapes](#shapes).
- \`budget\` and \`timeouts\` of a step have the keys that they have [in the file](#the-file), without \`timeouts.run\`.

## The file

${keysOf('file')}

## Every step

${keysOf('step')}

## Step types

The keys below belong to a step's \`config\`. A step type that you [register](extend.md) accepts any keys.

### Every model call

\`llm\` and \`router\` have these keys.

${tableOf(ofModels.filter((row) => !at('file').some((other) => row.key.includes('.') && isSame(row, other))))}

${sections.join('\n\n')}

## Shapes

\`input\`, \`output.schema\` and \`parameters\` describe values: \`name: type\`, or \`name:\` with the keys below. A name that ends in \`?\` is
optional. A complete JSON Schema (\`type: object\` with \`properties\`) is accepted as well.

${keysOf('shape')}

## Variables

| reference | value |
|---|---|
| \`$input\` | what the client sent |
| \`$name\`, \`$stepResult.name\` | the value of the earlier step with \`result: name\` |
| \`$item\`, \`$index\` | of the surrounding loop |
| \`$env.NAME\` | an environment variable that the config allows |
| \`$user.id\`, \`.tenant\`, \`.name\`, \`.roles\`, \`.claims.NAME\` | who started the run, or forked it: no value if it belongs to no one, or if the field is unknown |

A text that is a single reference becomes the value and keeps its type; inside a longer text the value is inserted as text. A trailing \`?\` means that the value may be missing. Inserted values are never resolved again. In templates,
unquoted \`true\`, \`null\` and \`4\` keep their type; quoted ones are texts.

With ${code(JSON.stringify(scope.input))} as \`$input\`, a step's \`draft\` ${code(JSON.stringify(scope.variables.get('draft')))} and another step's \`notes\` ${code(JSON.stringify(scope.variables.get('notes')))}; started by ${code(JSON.stringify(scope.user))}:

${markdownTable(
  ['expression', 'value'],
  written.map((text) => [
    code(text),
    shown(() => code(JSON.stringify(resolve(text, scope)) ?? '') || 'no value: the key is left out'),
  ]),
)}

## Conditions

\`if\` and \`while\` take comparisons with \`==\`, \`!=\`, \`<\`, \`<=\`, \`>\`, \`>=\`, \`contains\` and \`in\`, combined with \`and\`, \`or\`, \`not\` and parentheses.
\`empty\` tests for null, \`""\`, \`[]\` or \`{}\`. Values are references, quoted texts, numbers, \`true\`, \`false\`, \`null\` and lists, without arithmetic or function calls. With the same values as above:

${markdownTable(
  ['expression', 'value'],
  expressions.map((text) => [code(text), shown(() => code(String(evaluated(text))))]),
)}
`
}

type KeyRow = ReturnType<typeof describeKeys>[number]

function isSame(one: KeyRow, other: KeyRow): boolean {
  return JSON.stringify({ ...one, place: '' }) === JSON.stringify({ ...other, place: '' })
}

function tableOf(rows: KeyRow[]): string {
  return markdownTable(
    ['key', 'type', 'default', 'what it means'],
    rows.map(({ key, type, required, default: preset = '', description }) => [
      code(key),
      type,
      required ? '**required**' : code(preset),
      description,
    ]),
  )
}

function evaluated(text: string): boolean {
  const parsed = parseExpression(text, (_, message) => {
    throw new Error(message)
  })
  return evaluate(parsed!.expression, scope)
}

function shown(value: () => string): string {
  try {
    return value()
  } catch (error) {
    return `an error: ${(error as Error).message}`
  }
}
