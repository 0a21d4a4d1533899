/** docs/parts.md: the parts of a run, out of the words beside their types in src/part/part.ts. */
import { readFileSync } from 'node:fs'
import { code, markdownTable } from './table.ts'

const source = readFileSync(new URL('../../src/part/part.ts', import.meta.url), 'utf8')
const grammar = readFileSync(new URL('../../src/part/grammar.ts', import.meta.url), 'utf8')

export function partsDoc(): string {
  return `# Parts: what can happen in a run

A run's log is a list of entries: one part each, with \`seq\` (from 1, without gaps), \`timestamp\` (epoch ms) and \`step\` (the path of the step
that spoke, such as \`main/answer/1\`; empty for the run itself). \`millrace logs <run> --json\`, \`GET /api/runs/<run>/events\` and
\`--format parts\` show it as NDJSON. In TypeScript: \`import type { Part } from 'millrace/part'\`.

## Their order

${docAt(grammar, 0).split('\n').slice(2).join('\n').trim()}

## What a model says

These are the AI SDK's own \`LanguageModelV3StreamPart\`s, with what V4 added to them.

${markdownTable(['type', 'what it means'], modelParts())}

## What a run adds

${runParts()
  .map(({ type, about, fields }) => `### \`${type}\`\n\n${about}\n\n${markdownTable(['field', 'type', ''], fields)}`)
  .join('\n\n')}
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
    const fields = [...body!.matchAll(/(?: {2}\/\*\*([^]*?)\*\/\n)? {2}(\w+\??): (.*)\n/gu)].map(
      ([, doc = '', name, kind]) => [code(name!), code(kind!), plain(doc)],
    )
    found.push({ type: type!, about: about[0]!.toUpperCase() + about.slice(1).replaceAll('\n', ' '), fields })
  }
  return found
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
