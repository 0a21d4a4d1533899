/**
 * The role that the demo model plays in an agent with several steps, so that its answers reflect the system prompt. Keyword rules,
 * like those in `plan.ts`; docs/demo-model.md lists them.
 */
import { parseJson } from '../../part/json.ts'

/** `words`: the last user message, used as the topic. Undefined if the system prompt describes no known role. */
export function playRole(system: string, words: string): string | undefined {
  const { instructions, material } = readPrompt(system)
  const role = roles.find(({ cue }) => cue.test(instructions))
  if (role === undefined) return undefined
  const topic = shorten(words || subjectOf(instructions), 80)
  const sentences = role.speak(topic, material, instructions)
  return `[demo model, ${role.name}] ${fit(sentences, instructions)}`
}

/** The critic's text for a field of a JSON object. The same score and topic always produce the same advice. */
export function adviceOn(words: string): string {
  const score = Number(/\bscore\s*(?:=|:|is)\s*(\d{1,6})/iu.exec(words)?.[1] ?? 0)
  const topic = shorten(/"([^"]+)"/u.exec(words)?.[1] ?? unmarked(words), 60)
  const advice = ['Say what nobody else could say about', 'Leave out every word that is not needed about']
  return `${[...advice, 'Put the strongest word last when you speak about'][score % 3]} "${topic}".`
}

interface Role {
  name: string
  cue: RegExp
  /** Returns sentences; `fit` arranges them into the requested form. */
  speak(topic: string, material: Material[], instructions: string): string[]
}

/** The first role whose cue matches the instructions is used. */
const roles: readonly Role[] = [
  {
    name: 'judge',
    cue: /\b(?:weigh|decide|verdict|recommend|compare)\b/iu,
    speak: (topic, material) => [
      `I have weighed ${count(material.length, 'view')} on "${topic}".`,
      ...material.map(({ label, text }) => `${label} says ${cite(text)}`),
      'I recommend to start with the smallest step that can be taken back.',
    ],
  },
  {
    name: 'critic',
    cue: /\b(?:judge|criti\w+|score|rate|grade|review)\b/iu,
    speak: (topic, material) => [
      `"${material[0]?.text ?? topic}" is a start.`,
      'Its weakness: it could be about anything.',
      'Name one thing that only this one has.',
    ],
  },
  {
    name: 'optimist',
    cue: /\b(?:go(?:es)? well|optimist\w*|advantages?|benefits?|speak for|argue for|in favou?r)\b/iu,
    speak: (topic) => [`"${topic}" can go well: what works is kept.`, 'What is new helps from the first day.'],
  },
  {
    name: 'sceptic',
    cue: /\b(?:go(?:es)? wrong|s[ck]eptic\w*|risks?|drawbacks?|against)\b/iu,
    speak: (topic) => [`"${topic}" can go wrong: it takes longer than planned.`, 'Nobody has said how to go back.'],
  },
  {
    name: 'accountant',
    cue: /\b(?:costs?|accountant|budget|price|expenses?)\b/iu,
    speak: (topic) => [`"${topic}" costs time before it saves any.`, 'Set a limit, and stop when it is reached.'],
  },
  {
    name: 'summarizer',
    cue: /\b(?:summar\w+|sum up|shorten|condense)\b/iu,
    speak: (topic, material) => [`In short, this is about "${topic}".`, ...grouped(material)],
  },
  {
    name: 'researcher',
    cue: /\b(?:this question|research\w*|find out|facts? about)\b/iu,
    speak: (topic, material) => [
      `The topic is "${topic}".`,
      ...material.map(({ text }) => `The question is ${cite(text)}`),
      'A model with knowledge of its own would answer it here.',
    ],
  },
  {
    name: 'writer',
    cue: /\b(?:write|draft|rewrite|improve|notes|tell|say it|say this|slogan|poem)\b/iu,
    speak: (topic, material) => [`This is about "${topic}".`, ...grouped(material)],
  },
]

/** `label: "a", "b".` */
function grouped(material: Material[]): string[] {
  const byLabel = new Map<string, string[]>()
  for (const { label, text } of material) byLabel.set(label, [...(byLabel.get(label) ?? []), text])
  return [...byLabel].map(([label, cited]) => {
    const last = cite(cited.at(-1)!)
    const before = cited.slice(0, -1).map((text) => `"${text}", `)
    return `${label}${label.endsWith('?') ? '' : ':'} ${before.join('')}${last}`
  })
}

/** `Speak for tea.` → `tea` */
function subjectOf(instructions: string): string {
  const about = /\b(?:about|for|against|on|of)\s+([^.\n]+)/iu.exec(instructions)?.[1]
  return about ?? instructions.split('\n')[0]!
}

const numbers = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']
const form = new RegExp(
  `\\b(\\d{1,2}|${numbers.join('|')})\\s+(?:\\w+\\s+)?(sentence|paragraph|line|point|fact|item)s?\\b`,
  'iu',
)

/** Produces as many sentences, paragraphs or lines as the prompt asks for. */
function fit(sentences: string[], instructions: string): string {
  const [, amount, unit] = form.exec(instructions) ?? []
  if (amount === undefined || unit === undefined) return sentences.join(' ')
  const named = numbers.indexOf(amount.toLowerCase())
  const wanted = Math.max(1, named < 0 ? Number(amount) : named)
  const name = unit.toLowerCase()
  if (name === 'sentence') return filled(sentences.slice(0, wanted), wanted, name).join(' ')
  // Split all sentences into that many pieces; the first ones get the most.
  const each = Math.ceil(sentences.length / wanted)
  const pieces = Array.from({ length: wanted }, (_, i) => sentences.slice(i * each, (i + 1) * each).join(' '))
  return filled(
    pieces.filter((piece) => piece !== ''),
    wanted,
    name,
  ).join(name === 'paragraph' ? '\n\n' : '\n')
}

function filled(pieces: string[], wanted: number, name: string): string[] {
  return Array.from({ length: wanted }, (_, i) => pieces[i] ?? `This is ${name} ${i + 1} of ${wanted}.`)
}

/** Quotes the text, and adds a full stop unless it already ends with punctuation. */
function cite(text: string): string {
  return /[.!?…]$/u.test(text) ? `"${text}"` : `"${text}".`
}

function count(n: number, what: string): string {
  return n === 0 ? `the ${what}s` : n === 1 ? `one ${what}` : `${n} ${what}s`
}

/* Splits a system prompt into instructions and material, for the demo model. */

/** Content that the prompt supplies: a labelled line (`The optimist: …`), or an item of a JSON list. */
interface Material {
  label: string
  text: string
}

/**
 * Instructions are lines without a colon, and the text before a colon if it is more than a label. Text after a colon is
 * material and is never treated as an instruction.
 */
function readPrompt(system: string): { instructions: string; material: Material[] } {
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
function unmarked(text: string): string {
  return text
    .replaceAll(/\[demo model, \w+\] /gu, '')
    .replace(/(?<=[.!?…])\?$/u, '')
    .trim()
}

function shorten(text: string, most: number): string {
  const line = text.trim().replaceAll(/\s+/gu, ' ').replaceAll('"', "'")
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line
}
