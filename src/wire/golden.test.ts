/**
 * Each `golden/<case>.ndjson` is a run; beside it stands what each wire sends of it. `UPDATE_GOLDEN=1` writes the files
 * again: read the diff before you commit it.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import { createGrammar } from '../fold/grammar.ts'
import { createOpenAiCompletion } from './openai/openai-completion.ts'
import type { OpenAiOptions } from './openai/openai-output.ts'
import { lastResume } from './wire.contract.ts'
import type { EncoderOptions, Wire } from './wire.ts'
import { wires } from './wires.ts'

const folder = new URL('golden/', import.meta.url)
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.ndjson'))
  .map((file) => file.slice(0, -'.ndjson'.length))

test('there are cases', () => {
  expect(names.length).toBeGreaterThanOrEqual(15)
})

function golden(file: string, body: string): void {
  const url = new URL(file, folder)
  if (process.env['UPDATE_GOLDEN']) writeFileSync(url, body)
  if (!existsSync(url)) throw new Error(`golden/${file} is missing: run with UPDATE_GOLDEN=1 and read what it wrote`)
  expect(body, `golden/${file}`).toBe(readFileSync(url, 'utf8'))
}

function encode(wire: Wire, entries: readonly Entry[], options?: EncoderOptions, skipped = 0): string {
  const encoder = wire.createEncoder(options)
  for (const entry of entries.slice(0, skipped)) encoder.skip(entry)
  const body = entries.slice(skipped).map((entry) => encoder.encode(entry))
  return `${body.join('')}${encoder.state === 'broken' ? '<transfer broken>' : ''}`
}

const extended: OpenAiOptions = { includeUsage: true, extensions: ['tools', 'trace'], toolOutputMaxChars: 40 }

/** The answer without streaming. */
function complete(entries: readonly Entry[], options: EncoderOptions): string {
  const completion = createOpenAiCompletion(options)
  for (const entry of entries) completion.apply(entry)
  return `${JSON.stringify(completion.result, undefined, 2)}\n`
}

test.each(names)('%s', (name) => {
  const source = readFileSync(new URL(`${name}.ndjson`, folder), 'utf8')
  const entries = source
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)
  const grammar = createGrammar()
  for (const entry of entries) expect(grammar.check(entry)).toBeUndefined()
  expect(grammar.end()).toBeUndefined()

  const resumedAt = lastResume(entries)
  expect(encode(wires.parts, entries)).toBe(source)
  golden(`${name}.text.txt`, encode(wires.text, entries, { resumedAt }))
  golden(`${name}.ui.txt`, encode(wires.ui, entries, { resumedAt }))
  golden(`${name}.ui7.txt`, encode(wires.ui, entries, { resumedAt, ui7: true }))
  golden(`${name}.openai.txt`, encode(wires.openai, entries, { resumedAt }))
  golden(`${name}.openai.json`, complete(entries, { resumedAt }))
  golden(`${name}.openai-extensions.txt`, encode(wires.openai, entries, { resumedAt, openai: extended }))
  if (resumedAt === 0) return
  golden(`${name}.ui-first.txt`, encode(wires.ui, entries))
  golden(`${name}.ui-resumed.txt`, encode(wires.ui, entries, { resumedAt }, resumedAt - 1))
})
