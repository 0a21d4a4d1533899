/** docs/parts.md: the parts of a run, out of the words beside their types in src/part/part.ts. */
import { readFileSync } from 'node:fs'
import { maxDepth, tooDeep } from '../../src/part/json.ts'
import { code, markdownTable } from './table.ts'

const source = readFileSync(new URL('../../src/part/part.ts', import.meta.url), 'utf8')
const grammar = readFileSync(new URL('../../src/part/grammar.ts', import.meta.url), 'utf8')
const errors = readFileSync(new URL('../../src/part/error.ts', import.meta.url), 'utf8')

export function partsDoc(): string {
  return `# Parts: what can happen in a run

A run's log is a list of entries: one part each, with \`seq\` (from 1, without gaps), \`timestamp\` (epoch ms) and \`step\` (the path of the step
that spoke, such as \`main/answer/1\`; empty for the run itself). \`millrace logs <run> --json\`, \`GET /api/runs/<run>/events\` and
\`--format parts\` show it as NDJSON. In TypeScript: \`import type { Part } from 'millrace/part'\`.

## Their order

${docAt(grammar, 0).split('\n').slice(2).join('\n').trim()}

## Values

Every value in a log is JSON and nested at most ${maxDepth} levels deep. Where a tool, a step or a provider nests deeper, the log has \`${tooDeep}\`; for a
cycle it has \`[circular]\`, for a BigInt its digits, for what throws while it is read \`[not JSON: …]\`. A model whose arguments for a tool are
nested deeper is told so as the result of its call. A request body that is nested deeper than ${maxDepth + 32} levels is refused with status 400.

## What a model says

These are the AI SDK's own \`LanguageModelV3StreamPart\`s, with what V4 added to them.

${markdownTable(['type', 'what it means'], modelParts())}

## What a run adds

${runParts()
  .map(({ type, about, fields }) => `### \`${type}\`\n\n${about}\n\n${markdownTable(['field', 'type', ''], fields)}`)
  .join('\n\n')}

## Errors, and who is told what of them

${docAt(errors, 0).split('\n').slice(2).join('\n').trim()}

An \`ErrorValue\` stands in \`error\`, \`step-finish\`, \`retry\` and \`run-end\`. ${docAt(errors, errors.indexOf('/**', 3)).replaceAll('\n', ' ')}

${markdownTable(['field', 'type', ''], fieldsOf(/(?<=export interface ErrorValue \{\n)[^]*?(?=^\})/mu.exec(errors)![0]))}

The message of a step's failure names the step and its type, wherever it is nested: \`Step "ask/answer" (llm): …\`, and of what code of an
application threw \`Step "look" (my-type) failed.\`; a called agent's step has the ids of the calls before its own.

| who | is told |
|---|---|
| \`/api/chat\` (UI stream, JSON), \`/v1/…\`, \`--format ui\` | \`message\`, and \`code\` where the protocol has a place for it |
| plain text | nothing: the transfer breaks off |
| \`/api/runs…\`, \`--format parts\`, \`millrace logs\`, \`millrace show\`, stderr of \`millrace run\`, \`await run.result\` | all of it, without secrets |
| \`onError\` | the error itself, named, with what was thrown as its \`cause\` |
| a model whose tool threw | what the tool threw, as the tool's result |
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
