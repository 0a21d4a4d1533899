/** Finds values in a JSON text by their path, without parsing it. The text must be valid JSON. */

export interface Place {
  /** A string's are inside its quotes. */
  start: number
  end: number
  kind: 'text' | 'string' | 'integer'
}

/**
 * What a string or a number at this path is: the text to read, or a value that nobody reads. Undefined: it must stay what it is.
 * The path of the first choice's text: `choices.0.delta.content`.
 */
export type Choose = (path: string) => 'text' | 'unread' | undefined

/** One text, and values that nobody reads. */
export function textAt(text: string, ...unread: readonly string[]): Choose {
  return (path) => (path === text ? 'text' : unread.includes(path) ? 'unread' : undefined)
}

const quote = 34
const backslash = 92

/** In their order. Undefined if an object has a key twice: the last one would count. */
export function placesIn(json: string, choose: Choose): Place[] | undefined {
  const places: Place[] = []
  let at = 0
  let isPlain = true

  function skipSpace(): void {
    while (json.charCodeAt(at) <= 32) at++
  }

  function skipString(): void {
    at++
    for (let code = json.charCodeAt(at); code !== quote; code = json.charCodeAt(at)) at += code === backslash ? 2 : 1
    at++
  }

  function readValue(path: string): void {
    skipSpace()
    const start = at
    const first = json[at]
    if (first === '{' || first === '[') readMembers(path, first === '{')
    else if (first === '"') {
      skipString()
      const chosen = choose(path)
      if (chosen !== undefined)
        places.push({ start: start + 1, end: at - 1, kind: chosen === 'text' ? 'text' : 'string' })
    } else {
      // A number, `true`, `false` or `null`: all end where something else begins.
      while (at < json.length && !isBetween(json.charCodeAt(at))) at++
      const isNumber = first === '-' || (first! >= '0' && first! <= '9')
      if (isNumber && choose(path) === 'unread') places.push({ start, end: at, kind: 'integer' })
    }
    skipSpace()
  }

  function readMembers(path: string, isObject: boolean): void {
    const keys: string[] = []
    const prefix = path === '' ? '' : `${path}.`
    let index = 0
    at++
    skipSpace()
    while (json[at] !== '}' && json[at] !== ']') {
      let key = String(index++)
      if (isObject) {
        skipSpace()
        const start = at
        skipString()
        key = json.slice(start + 1, at - 1)
        // Names that are written with an escape could be the same as another.
        if (keys.includes(key) || key === '' || key.includes('.') || key.includes('\\')) isPlain = false
        keys.push(key)
        skipSpace()
        at++
      }
      readValue(prefix + key)
      if (json[at] === ',') at++
    }
    at++
  }

  readValue('')
  return isPlain ? places : undefined
}

/** Space, comma, closing bracket or brace. */
function isBetween(code: number): boolean {
  return code <= 32 || code === 44 || code === 93 || code === 125
}
