/** The demo model's answer when JSON output is requested. */
import { argumentsFrom, type Schema } from './arguments.ts'
import { adviceOn } from './role.ts'

/** Names of fields for a critic's advice. */
const adviceFields = /^(?:advice|feedback|critique|criticism|improvements?|suggestions?)$/i

/** JSON that fits the schema, filled from the words. Advice fields get the critic's text unless the words set them. */
export function jsonFor(schema: unknown, words: string): string {
  if (schema === undefined) return JSON.stringify({ answer: `The Millrace demo model was told: ${words}` })
  const value = argumentsFrom(schema as Schema, words)
  return JSON.stringify(value, (key, item: unknown) =>
    typeof item === 'string' && adviceFields.test(key) && !new RegExp(`\\b${key}\\s*[=:]`, 'iu').test(words)
      ? adviceOn(words)
      : item,
  )
}
