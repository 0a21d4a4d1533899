/** The parts of a run in docs/streaming-protocol.md, out of the words beside their types in src/part/model-part.ts, part.ts and request-part.ts. */
import { readFileSync } from 'node:fs'
import { maxDepth, tooDeep } from '../../src/part/json.ts'
import { code, markdownTable } from './table.ts'

const source = ['model-part', 'part', 'request-part']
  .map((name) => readFileSync(new URL(`../../src/part/${name}.ts`, import.meta.url), 'utf8'))
  .join('\n')
const errors = readFileSync(new URL('../../src/part/error.ts', import.meta.url), 'utf8')

export function partsSection(): string {
  return `### Values

Every value in a log is JSON, nested at most ${maxDepth} levels deep. A deeper value is replaced by \`${tooDeep}\`, a cycle by \`[circular]\`, a BigInt by its digits, and a value that throws while it is read by \`[not JSON: …]\`.
Deeper tool arguments are refused: the model gets an error as the result of its call. A request body deeper than ${maxDepth + 32} levels is a 400.

### Parts of a model's answer

These are the AI SDK's \`LanguageModelV3StreamPart\`s, with the additions of V4.

${markdownTable(['type', 'what it means'], modelParts())}

### Parts that a run adds

${runParts()
  .map(({ type, about, fields }) => `#### \`${type}\`\n\n${about}\n\n${markdownTable(['field', 'type', ''], fields)}`)
  .join('\n\n')}

### Errors, and who sees what

${docAt(errors, 0).split('\n').slice(2).join('\n').trim()}

An \`ErrorValue\` is in \`error\`, \`step-finish\`, \`retry\` and \`run-end\`. ${docAt(errors, errors.indexOf('/**', 3)).replaceAll('\n', ' ')}

${markdownTable(['field', 'type', ''], fieldsOf(/(?<=export interface ErrorValue \{\n)[^]*?(?=^\})/mu.exec(errors)![0]))}

The message of a failed step names the step and its type, at any nesting depth: \`Step "ask/answer" (llm): …\`. For an exception of your own code it is
\`Step "look" (my-type) failed.\`. A step of a called agent is prefixed with the ids of the calls.

| who | sees |
|---|---|
| \`/api/chat\` (UI stream, JSON), \`/v1/…\`, \`--format ui\` | \`message\`, and \`code\` where the protocol has a place for it |
| plain text | nothing: the transfer breaks |
| \`/api/runs…\`, \`--format parts\`, \`millrace logs\`, \`millrace show\`, stderr of \`millrace run\`, \`await run.result\` | everything, without secrets |
| \`onError\` | the error, with the step's name and the thrown value as its \`cause\` |
| a model whose tool threw | the tool's error, as the tool's result |
`
}

/** Every type that stands in the source, so that a test sees one that the tables lack. */
export function partTypes(): string[] {
  const types = [...source.matchAll(/\bV3<'([\w-]+)'>|^ *(?:\| \{ )?type: '([\w-]+)'/gmu)].map(([, a, b]) => a ?? b!)
  return [...new Set(types)]
}

function modelParts(): string[][] {
  const [body] = /(?<=export type ModelPart =\n)[^]*?\n\n/u.exec(source)!
  return [...body.matchAll(/\/\*\* (.*) \*\/\n {2}\| (.*)/gu)].map(([, about, type]) => [
    code(/'([\w-]+)'/u.exec(type!)![1]!),
    about!,
  ])
}

function runParts() {
  const found: { type: string; about: string; fields: string[][] }[] = []
  for (const match of source.matchAll(/^export interface \w+ \{\n {2}type: '([\w-]+)'\n([^]*?)^\}/gmu)) {
    const [, type, body] = match
    // One comment may stand above two interfaces.
    const about = docAt(source, source.lastIndexOf('/**', match.index)).replace(/^(`[\w-]+`(?:, )?)+: /u, '')
    const fields = fieldsOf(body!)
    found.push({ type: type!, about: about[0]!.toUpperCase() + about.slice(1).replaceAll('\n', ' '), fields })
  }
  return found
}

/** The fields of an interface, out of what stands between its braces. */
function fieldsOf(body: string): string[][] {
  return [...body.matchAll(/(?: {2}\/\*\*([^]*?)\*\/\n)? {2}(\w+\??): (.*)\n/gu)].map(([, doc = '', name, kind]) => [
    code(name!),
    code(kind!),
    plain(doc),
  ])
}

/** The text of the comment that begins there. */
function docAt(text: string, from: number): string {
  const begin = text.indexOf('/**', from)
  return plain(text.slice(begin + 3, text.indexOf('*/', begin)), '\n')
}

function plain(doc: string, between = ' '): string {
  return doc
    .split('\n')
    .map((line) => line.replace(/^ *\* ?/u, '').trimEnd())
    .join(between)
    .trim()
}
