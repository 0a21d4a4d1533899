/** Random chunks of OpenAI's chat completions, as the package knows them. */
import { compatibleChatSchema } from '../chat/chunk-schema.ts'
import { pick, type Random } from './random.ts'
import { sampleOf, type Fields } from './samples.ts'

const chunkOf = (delta: Fields, rest: Fields = {}) => ({ id: 'c', choices: [{ index: 0, delta }], ...rest })

export function chatEvents(random: Random): Fields[] {
  if (random() < 0.3) return callOf(random)
  const made = sampleOf(compatibleChatSchema(), random)
  // Errors end much, so they are rare here. Two choices are rare too, and only the first is read.
  if ('error' in made && random() < 0.9) return chatEvents(random)
  if (Array.isArray(made['choices']) && random() < 0.8) made['choices'] = made['choices'].slice(0, 1)
  return [made]
}

export function chatBurst(random: Random): (delta: string) => Fields {
  const field = pick(['content', 'content', 'reasoning', 'reasoning_content'], random)
  const isPadded = random() < 0.4
  return (delta) => chunkOf({ [field]: delta }, isPadded ? { obfuscation: 'x'.repeat(delta.length) } : {})
}

/** Most begin with a name, and some end. */
function callOf(random: Random): Fields[] {
  const index = pick([0, 0, 1, undefined, null], random)
  const id = pick(['call_1', 'call_2', undefined, ''], random)
  const piece = (named: Fields, rest: Fields = {}) => chunkOf({ tool_calls: [{ index, ...rest, function: named }] })
  const begin = piece(
    { name: pick(['lookup', 'add', 'get', '', undefined], random), arguments: pick(['', '{"a":', '{}'], random) },
    { id, type: 'function' },
  )
  const pieces = ['{"q"', ':"', 'ü', '"}', '1}', ' '].filter(() => random() < 0.4)
  return [begin, ...pieces.map((text) => piece({ arguments: text }))]
}
