/**
 * The words of entries for the full-text index. SQLite's tokenizer splits at everything that is neither a letter nor a digit, and drops accents and
 * case. Scripts that are written without spaces (Chinese, Japanese, Thai …) would become one word per sentence: each of their characters is a word
 * here, and several in a search must be adjacent.
 */
import { textOf } from '../../fold/run-view.ts'
import type { Entry } from '../../part/entry.ts'
import { parseJson } from '../../part/json.ts'
import { messagesOf } from '../../part/message.ts'
import type { SearchHit } from '../../part/records.ts'
import { withoutTerms } from './index-terms.ts'

/** The kind of text that an entry has or begins. */
export const textKinds: Readonly<Partial<Record<Entry['type'], SearchHit['kind']>>> = {
  'run-start': 'user',
  message: 'user',
  'text-start': 'text',
  'reasoning-start': 'reasoning',
  'tool-call': 'tool-input',
  'tool-result': 'tool-output',
}

/** The text of an entry that contains its own text. */
export function entryText(entry: Entry): string {
  switch (entry.type) {
    case 'run-start':
      return userText(entry.input)
    case 'message':
      return safeText({ role: 'user', content: entry.content })
    case 'tool-call':
      return leaves(parsed(entry.input)).join('\n')
    case 'tool-result':
      return entry.preliminary === true ? '' : leaves(entry.result).join('\n')
    default:
      return ''
  }
}

/** The user's new message: earlier messages belong to earlier runs. */
function userText(input: Record<string, unknown>): string {
  const { messages: _, ...rest } = input
  const messages = messagesOf(input)
  const last = messages.findLastIndex((message) => message?.role === 'assistant')
  const said = messages.slice(last + 1).filter((message) => message?.role === 'user')
  return [...said.map(safeText), ...leaves(rest)].join('\n')
}

function safeText(message: Parameters<typeof textOf>[0]): string {
  try {
    return textOf(message)
  } catch {
    return leaves(message.content).join('\n')
  }
}

function parsed(json: string): unknown {
  try {
    return parseJson(json)
  } catch {
    return json
  }
}

/** The texts and numbers in a value. */
function leaves(value: unknown): string[] {
  const found: string[] = []
  const open: unknown[] = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next === 'string') found.push(next)
    else if (typeof next === 'number') found.push(String(next))
    else if (typeof next === 'object' && next !== null) {
      for (const each of Object.values(next).reverse()) open.push(each)
    }
  }
  return found
}

const unspaced =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu

/** A text as it is indexed and searched. */
export function spaced(given: string): string {
  const text = withoutTerms(given)
  // Nearly all texts are in other scripts.
  return /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff66-\uff9d\ud840-\ud8ff]/u.test(text)
    ? text.replace(unspaced, ' $& ')
    : text
}
