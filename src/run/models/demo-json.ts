/** The demo model's answer where an object is asked for. */
import { argumentsFrom, type Schema } from './demo-arguments.ts'
import { adviceOn } from './demo-role.ts'

/** Fields in which a critic says what to do better. */
const adviceFields = /^(?:advice|feedback|critique|criticism|improvements?|suggestions?)$/i

/** JSON that fits the schema, out of the words; what a critic has to say is the critic's. */
export function jsonFor(schema: unknown, words: string): string {
  if (schema === undefined) return JSON.stringify({ answer: `The Millrace demo model was told: ${words}` })
  const value = argumentsFrom(schema as Schema, words)
  return JSON.stringify(value, (key, item: unknown) =>
    typeof item === 'string' && adviceFields.test(key) && !new RegExp(`\\b${key}\\s*[=:]`, 'iu').test(words)
      ? adviceOn(words)
      : item,
  )
}
