/** Finds values in a JSON text by their path, without parsing it. The text must be valid JSON. */

export interface Place {
  start: number
  end: number
  isString: boolean
  isText: boolean
}

/** What may stand in a place: the text to read, another string, a number. Undefined: only what stands there. */
export type Choose = (path: string) => 'text' | 'string' | 'number' | undefined

/** Strings and numbers that `choose` wants, in their order. Undefined if an object has a key twice: the last one would count. */
export function placesIn(json: string, choose: Choose): Place[] | undefined {
  const places: Place[] = []
  let at = 0
  let isPlain = true

  function skipSpace(): void {
    while (json.charCodeAt(at) <= 32) at++
  }

  function skipString(): void {
    at++
    while (json.charCodeAt(at) !== 34) at += json.charCodeAt(at) === 92 ? 2 : 1
    at++
  }

  function readValue(path: string): void {
    skipSpace()
    const start = at
    const first = json[at]!
    if (first === '{' || first === '[') readMembers(path, first === '{')
    else {
      if (first === '"') skipString()
      else while (at < json.length && !/[\s,\]}]/.test(json[at]!)) at++
      const isString = first === '"'
      const isNumber = first === '-' || (first >= '0' && first <= '9')
      const chosen = isString || isNumber ? choose(path) : undefined
      if (chosen !== undefined && (chosen === 'number') === isNumber) {
        places.push({ start, end: at, isString, isText: chosen === 'text' })
      }
    }
    skipSpace()
  }

  function readMembers(path: string, isObject: boolean): void {
    const keys = isObject ? new Set<string>() : undefined
    let index = 0
    at++
    skipSpace()
    while (json[at] !== '}' && json[at] !== ']') {
      let key = String(index++)
      if (keys !== undefined) {
        skipSpace()
        const start = at
        skipString()
        key = JSON.parse(json.slice(start, at)) as string
        if (keys.has(key) || key === '' || key.includes('.')) isPlain = false
        keys.add(key)
        skipSpace()
        at++
      }
      readValue(path === '' ? key : `${path}.${key}`)
      if (json[at] === ',') at++
    }
    at++
  }

  readValue('')
  return isPlain ? places : undefined
}
