/** Splits a system prompt into instructions and material, for the demo model. */
import { parseJson } from '../../part/json.ts'

/** Content that the prompt supplies: a labelled line (`The optimist: …`), or an item of a JSON list. */
export interface Material {
  label: string
  text: string
}

/**
 * Instructions are lines without a colon, and the text before a colon if it is more than a label. Text after a colon is
 * material and is never treated as an instruction.
 */
export function readPrompt(system: string): { instructions: string; material: Material[] } {
  const instructions: string[] = []
  const material: Material[] = []
  let label = ''
  for (const line of system.slice(0, 20_000).split('\n')) {
    const [, before, behind] = /^([^:"{[]{1,120}):(?:\s+(.*))?$/u.exec(line) ?? []
    if (before === undefined && label === '') {
      instructions.push(line)
      continue
    }
    if (before !== undefined) {
      // A short label such as "Against: …" only names what follows, unless it is the first line.
      if (instructions.length === 0 || before.trim().split(/\s+/u).length > 3) instructions.push(before)
      // "Write an answer. Use these notes: …": the label is the last sentence.
      label = before.trim().replace(/^.*[.!?]\s+(?=\S)/u, '')
    }
    material.push(...itemsOf(label, (before === undefined ? line : (behind ?? '')).trim()))
  }
  return { instructions: instructions.join('\n').trim(), material: material.slice(0, 8) }
}

/** Splits a JSON list into its items; other text is one item, empty text none. */
function itemsOf(label: string, text: string): Material[] {
  if (text === '') return []
  if (/^[[{]/u.test(text)) {
    try {
      return [parseJson(text)].flat().map((item) => itemOf(label, item))
    } catch {
      // Not JSON: treat it as ordinary text.
    }
  }
  return [{ label, text: shorten(unmarked(text), 160) }]
}

const labels = ['question', 'title', 'name', 'topic']
const texts = ['advice', 'feedback', 'answer', 'text', 'content', 'summary']

/** `{question, answer}` → the question labels the answer. Objects without known keys are shown as JSON. */
function itemOf(label: string, item: unknown): Material {
  const text = typeof item === 'string' ? item : (firstOf(item, texts) ?? JSON.stringify(item))
  return { label: shorten(firstOf(item, labels) ?? label, 100), text: shorten(unmarked(text), 160) }
}

function firstOf(item: unknown, names: readonly string[]): string | undefined {
  return names.map((name) => field(item, name)).find((text) => text !== undefined)
}

/** The non-empty string under this key, in the object or up to two levels below. */
function field(item: unknown, name: string, depth = 0): string | undefined {
  if (typeof item !== 'object' || item === null || depth > 2) return undefined
  const fields = new Map<string, unknown>(Object.entries(item))
  const own = fields.get(name)
  if (typeof own === 'string' && own !== '') return own
  return [...fields.values()].map((inner) => field(inner, name, depth + 1)).find((text) => text !== undefined)
}

/**
 * Removes the `[demo model, …]` prefixes of earlier answers, which would pile up from step to step, and the trailing `?` of an
 * optional reference.
 */
export function unmarked(text: string): string {
  return text
    .replaceAll(/\[demo model, \w+\] /gu, '')
    .replace(/(?<=[.!?…])\?$/u, '')
    .trim()
}

export function shorten(text: string, most: number): string {
  const line = text.trim().replaceAll(/\s+/gu, ' ').replaceAll('"', "'")
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line
}
