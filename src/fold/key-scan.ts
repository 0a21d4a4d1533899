/**
 * Hides strings and numbers under named keys in JSON text that comes in pieces. What comes out does not depend on where it is cut,
 * and nothing is held back. Of text that is not valid JSON rather too much is hidden than too little.
 */
import { parseJson } from '../part/json.ts'
import { redacted } from './secret-forms.ts'

/** Whether values under this object key are secret. */
export type IsSecretKey = (key: string) => boolean

/** An object or a list, or what stands around both. */
interface Level {
  isObject: boolean
  atKey: boolean
  /** All its values are secret. */
  isSecret: boolean
  /** The next value is secret. */
  hides: boolean
}

type Mode = 'between' | 'key' | 'string' | 'hidden string' | 'literal' | 'hidden word'
const literals = ['true', 'false', 'null']

/** The function takes the next piece of the text and returns what to show of it. */
export function createKeyScan(isSecretKey: IsSecretKey): (piece: string) => string {
  const above: Level[] = []
  let level: Level = { isObject: false, atKey: false, isSecret: false, hides: false }
  let mode: Mode = 'between'
  let isEscaped = false
  /** The key or the literal as far as it was read. */
  let word = ''
  const isBare = () => mode === 'literal' || mode === 'hidden word'

  /** A character inside quotes. */
  function quoted(c: string): string {
    const isEnd = c === '"' && !isEscaped
    isEscaped = c === '\\' && !isEscaped
    const shown = mode !== 'hidden string' || isEnd ? c : ''
    if (mode === 'key' && !isEnd) word += c
    if (isEnd) mode = 'between'
    return shown
  }

  /** A character of a number or another word that is secret. */
  function unquoted(c: string): string {
    if (mode === 'hidden word') return ''
    word += c
    if (literals.some((each) => each.startsWith(word))) return c
    mode = 'hidden word'
    return `"${redacted}"`
  }

  function between(c: string): string {
    const hides = level.hides && !level.atKey
    if (c === '"') {
      word = ''
      mode = level.atKey ? 'key' : hides ? 'hidden string' : 'string'
      return hides ? `"${redacted}` : c
    }
    if (c === '{' || c === '[') {
      above.push(level)
      level = { isObject: c === '{', atKey: c === '{', isSecret: hides, hides }
    } else if (c === '}' || c === ']') level = above.pop() ?? level
    else if (c === ',') {
      level.atKey = level.isObject
      level.hides = level.isSecret
    } else if (c === ':') {
      level.hides = level.isSecret || isSecretKey(unescaped(word.trim()))
      level.atKey = false
    } else if (hides && c.trim() !== '') {
      word = ''
      mode = 'literal'
      return unquoted(c)
    } else {
      if (level.atKey) word += c
      return c
    }
    word = ''
    return c
  }

  return (piece) => {
    let shown = ''
    for (let i = 0; i < piece.length; i++) {
      const c = piece[i]!
      if (isBare() && /[\s,:"{}[\]]/u.test(c)) mode = 'between'
      if (mode === 'between') shown += between(c)
      else shown += isBare() ? unquoted(c) : quoted(c)
    }
    return shown
  }
}

function unescaped(key: string): string {
  try {
    return parseJson(`"${key}"`) as string
  } catch {
    return key
  }
}
