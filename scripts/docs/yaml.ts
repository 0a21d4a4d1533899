/** docs/yaml.md: every key out of the schemas that the parser checks with, and `$` and conditions as they really come out. */
import { describeKeys } from '../../src/pipeline/describe-keys.ts'
import { evaluate } from '../../src/pipeline/evaluate.ts'
import { parseExpression } from '../../src/pipeline/expression.ts'
import { resolve, type Scope } from '../../src/pipeline/resolve.ts'
import { stepTypes } from '../../src/pipeline/step-types.ts'
import { code, markdownTable } from './table.ts'

const scope: Scope = {
  input: { topic: 'mills', count: 3, user: { name: 'Ada' } },
  variables: new Map<string, unknown>([
    ['draft', { text: 'Mills grind.', score: 4 }],
    ['notes', ['old', 'wet']],
  ]),
  env: { REGION: 'eu' },
}
const written = [
  '$input.topic',
  '$input.count',
  '$input.user',
  '$notes.0',
  '$draft.text',
  '$stepResult.draft.score',
  '$env.REGION',
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
  const keysOf = (place: string) =>
    markdownTable(
      ['key', 'type', 'default', 'what it means'],
      rows
        .filter((row) => row.place === place)
        .map(({ key, type, required, default: preset = '', description }) => [
          code(key),
          type,
          required ? '**required**' : code(preset),
          description,
        ]),
    )
  const sections = [...stepTypes].map(([type, { about }]) => `### \`${type}\`\n\n${about}\n\n${keysOf(type)}`)
  return `# An agent file, key by key

A key that is not here is an error, with what you probably meant. Unquoted and quoted scalars are the same where a type is
given below; a duration is a number of milliseconds or a text such as \`30s\`, \`5m\`, \`1.5h\`. \`list of step\` and \`shape\` are the
tables of those names. Editors show all of this: \`millrace schema\` prints it as JSON Schema, and the first line of an agent
(\`# yaml-language-server: $schema=./millrace.schema.json\`) points to it.

## The file

${keysOf('file')}

## Every step

${keysOf('step')}

## Step types

The keys below stand in a step's \`config\`. A type that the config file registers takes whatever it likes.

${sections.join('\n\n')}

## Shapes

\`input\`, \`output.schema\` and \`parameters\` describe values: \`name: type\`, or \`name:\` with the keys below. A name that ends in \`?\` may be
missing. A whole JSON Schema object (\`type: object\` with \`properties\`) is taken as well.

${keysOf('shape')}

## Variables

\`$input\` is what the client sent, \`$name\` the value of the earlier step with \`result: name\` (also \`$stepResult.name\`), \`$item\` and \`$index\`
belong to the loop around a step, \`$env.NAME\` reads those variables of the environment that the config allows. A text that is one
reference becomes the value, of whatever type; inside a longer text it is written out. \`?\` says that it may be missing. What a
reference stood for is never looked at again. In templates unquoted \`true\`, \`null\` and \`4\` have their type, and quoted ones are texts.

With ${code(JSON.stringify(scope.input))} as \`$input\`, a step's \`draft\` ${code(JSON.stringify(scope.variables.get('draft')))} and another's \`notes\` ${code(JSON.stringify(scope.variables.get('notes')))}:

${markdownTable(
  ['written', 'comes to'],
  written.map((text) => [
    code(text),
    shown(() => code(JSON.stringify(resolve(text, scope)) ?? '') || 'nothing: the key is left out'),
  ]),
)}

## Conditions

\`if\` and \`while\` compare: \`==\`, \`!=\`, \`<\`, \`<=\`, \`>\`, \`>=\`, \`contains\`, \`in\`, joined by \`and\`, \`or\`, \`not\` and parentheses; \`empty\` is null, \`""\`, \`[]\` or
\`{}\`. Values are references, texts in quotes, numbers, \`true\`, \`false\`, \`null\` and lists. Nothing is computed and nothing is called. With the
same values as above:

${markdownTable(
  ['written', 'comes to'],
  expressions.map((text) => [code(text), shown(() => code(String(evaluated(text))))]),
)}
`
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
