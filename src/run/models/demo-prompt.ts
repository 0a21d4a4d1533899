/** A system prompt as the demo model reads it: what it orders, and what it hands over. */
import { parseJson } from '../../part/json.ts'

/** Something that the prompt hands over: `The optimist: …`, or an item of a list of objects. */
export interface Material {
  label: string
  text: string
}

/**
 * Instructions are what stands on lines without a colon and, where it is more than a label, before one; what stands behind is
 * material and gives no orders.
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
      // "Against: …" among other lines only names what follows.
      if (instructions.length === 0 || before.trim().split(/\s+/u).length > 3) instructions.push(before)
      // "Write an answer. Use these notes: …": the notes are what the last sentence names.
      label = before.trim().replace(/^.*[.!?]\s+(?=\S)/u, '')
    }
    material.push(...itemsOf(label, (before === undefined ? line : (behind ?? '')).trim()))
  }
  return { instructions: instructions.join('\n').trim(), material: material.slice(0, 8) }
}

/** A JSON value item by item; anything else as it is. Nothing for an empty text. */
function itemsOf(label: string, text: string): Material[] {
  if (text === '') return []
  if (/^[[{]/u.test(text)) {
    try {
      return [parseJson(text)].flat().map((item) => itemOf(label, item))
    } catch {
      // Brackets that are not JSON are words like others.
    }
  }
  return [{ label, text: shorten(unmarked(text), 160) }]
}

const labels = ['question', 'title', 'name', 'topic']
const texts = ['advice', 'feedback', 'answer', 'text', 'content', 'summary']

/** `{question, answer}` → the one is the label of the other. What is known by no such name is shown as JSON. */
function itemOf(label: string, item: unknown): Material {
  const text = typeof item === 'string' ? item : (firstOf(item, texts) ?? JSON.stringify(item))
  return { label: shorten(firstOf(item, labels) ?? label, 100), text: shorten(unmarked(text), 160) }
}

function firstOf(item: unknown, names: readonly string[]): string | undefined {
  return names.map((name) => field(item, name)).find((text) => text !== undefined)
}

/** The text of that name, also within one of the objects inside. */
function field(item: unknown, name: string, depth = 0): string | undefined {
  if (typeof item !== 'object' || item === null || depth > 2) return undefined
  const fields = new Map<string, unknown>(Object.entries(item))
  const own = fields.get(name)
  if (typeof own === 'string' && own !== '') return own
  return [...fields.values()].map((inner) => field(inner, name, depth + 1)).find((text) => text !== undefined)
}

/**
 * Without the marks of earlier answers, which would pile up where one answer is the material of the next, and without the `?` of a
 * reference that may be missing.
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
