/** Tool arguments and JSON answers: JSON in the words as it is, or else a simple value for each type. Texts come from the words. */
import { parseJson } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'
import { advice, strings } from './scripts.ts'

export type Schema = Record<string, any>

export function argumentsFrom(root: Schema, words: string): unknown {
  try {
    return parseJson(/\{[^]*\}/.exec(words)?.[0] ?? '')
  } catch {
    // No JSON: the schema decides.
  }
  const found = words.matchAll(/"([^"]+)"|\b(?:in|for|of|at|about|to|with|and) (\p{Lu}[\w-]*(?: \p{Lu}[\w-]*)*)/gu)
  const texts = [...found].map(([, quoted, name]) => quoted ?? name!)
  return valueOf('', root, 0) ?? {}

  function valueOf(name: string, schema: Schema, depth: number): unknown {
    if (depth > 6) return null
    const choice = (schema['anyOf'] ?? schema['oneOf'])?.find(({ type }: Schema) => type !== 'null')
    if (choice !== undefined) return valueOf(name, choice, depth + 1)
    const constant = schema['const'] ?? schema['default'] ?? schema['enum']?.[0]
    if (constant !== undefined) return constant
    switch ([schema['type']].flat()[0] ?? (schema['properties'] && 'object')) {
      case 'object': {
        // Of the optional properties only a named time zone is filled.
        const isFilled = (key: string) => schema['required']?.includes(key) || (key === 'timeZone' && timeZoneIn(words))
        const filled = Object.entries<Schema>(schema['properties'] ?? {}).filter(([key]) => isFilled(key))
        return Object.fromEntries(filled.map(([key, each]) => [key, valueOf(key, each, depth + 1)]))
      }
      case 'array':
        return Array.from({ length: Math.min(20, schema['minItems'] || 1) }, () =>
          valueOf(name, schema['items'] ?? {}, depth + 1),
        )
      case 'number':
      case 'integer': {
        const stated = new RegExp(`${wordPattern(name)}[=:] ?(\\d{1,9})`).exec(words)?.[1]
        const value = Number(stated ?? schema['minimum'] ?? 1)
        return Math.max(schema['minimum'] ?? value, Math.min(schema['maximum'] ?? value, value))
      }
      case 'boolean':
        return true
    }
    if (name === 'timeZone') return timeZoneIn(words) ?? 'UTC'
    if (name === 'advice') return advice[Number(/\bscore: (\d+)/.exec(words)?.[1] ?? 0) % advice.length]
    const rest = words.replace(/^\W*(?:(?:to|with|for|and|on|about)\s+)*|[\s.!?]+$/gi, '')
    const fixed = name === 'expression' ? expressionsIn(words)[0] : ownValue(strings, schema['format'] ?? name)
    return (fixed ?? texts.shift() ?? rest).slice(0, schema['maxLength'] ?? 1000) || 'demo'
  }
}

/** As a whole word: `get_time` is not in `get_time_zone`. */
export function wordPattern(word: string): string {
  return `(?<![\\w-])${word.replace(/[^\w\s]/g, '\\$&')}(?!\\w|-\\w)`
}

/** `12*7`, `(2 + 3) * 4`. Dates and spans of years are none. */
export function expressionsIn(words: string): string[] {
  const found = words.replace(/\b\d{4}-\d[\d-]*/g, ' ').match(/(?<![\w.-])[-(]*\d[\d\s.()+*/^%-]*/g) ?? []
  return found.map((each) => each.replace(/[\s.+*/^%-]+$/, '')).filter((each) => /[\d)]\s*[-+*/^%]/.test(each))
}

/** `Asia/Tokyo`, or the zone that is named after a city in the words. */
function timeZoneIn(words: string): string | undefined {
  return Intl.supportedValuesOf('timeZone').find(
    (zone) => words.includes(zone) || words.includes(zone.replaceAll('_', ' ').replace(/.*\//, '')),
  )
}
