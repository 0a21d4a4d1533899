/** Random values that a zod schema accepts: every kind of event comes up, also those of which there is no recording. */
import type { z } from 'zod'
import { pick, type Random } from './random.ts'

/** Few, so that events are about the same items. */
const words = ['a', 'b', 'msg_1', 'fc_1', 'lookup', 'parallel', 'ü', '🌍', '"quoted"\n\\', '', 'constructor']
const numbers = [0, 0, 1, 1, 2, 3, -1, 1.5, 12345678901, 0.1, 1e21]

/** Texts that the readers look into, by the name of their field. */
const special: Record<string, readonly string[]> = {
  type: ['web_search', 'response.failed', 'rate_limit_error', 'invalid_request'],
  code: ['insufficient_quota', '429', '99', 'server_error', 'overloaded', 'print("hi")'],
  status: ['completed', 'failed', 'UNAVAILABLE', 'INVALID_ARGUMENT', 'NO_SUCH'],
  reason: ['max_output_tokens', 'content_filter', 'odd'],
  finishReason: ['STOP', 'STOP', 'MAX_TOKENS', 'SAFETY', 'CONTINUATION', 'MALFORMED_FUNCTION_CALL', 'NEW'],
  blockReason: ['SAFETY', '', 'BLOCK_REASON_UNSPECIFIED', 'OTHER'],
  name: ['lookup', 'add', 'parallel', 'other', 'json'],
  arguments: [
    '{}',
    '{"tool_uses":[{"recipient_name":"functions.lookup","parameters":{"q":1}},{"recipient_name":"functions.add","parameters":{}}]}',
    '{"tool_uses":[{"recipient_name":"functions.nope","parameters":{}}]}',
    '{"tool_uses":[]}',
    '{"tool_uses":[1]}',
    'not json',
    '',
  ],
  uri: ['https://example.com/', 'gs://b/a.pdf', 'x/readme.markdown', 'c.doc', 'c.docx', 'n.txt', ''],
  fileSearchStore: ['stores/one', ''],
  reasoning: [' Hmm', '', 'ü'],
  finish_reason: ['stop', 'stop', 'length', 'content_filter', 'tool_calls', 'function_call', 'odd'],
  stop_reason: ['end_turn', 'tool_use', 'pause_turn', 'refusal', 'max_tokens', 'stop_sequence', 'odd'],
  partial_json: ['{', '{"a":', '1}', '"', '{"code":"x"}', ''],
  jsonPath: [
    '$.a',
    '$.a',
    '$.b.c',
    '$.list[0]',
    '$.list[1]',
    '$.list[]',
    '$.o.0',
    '$',
    '$.list[0].x',
    '$.__proto__.x',
    'a[9]',
  ],
}

export type Fields = Record<string, unknown>

/** Of a schema of objects. */
export function sampleOf(schema: z.core.$ZodType, random: Random): Fields {
  return valueOf(schema, random) as Fields
}

function valueOf(schema: z.core.$ZodType, random: Random, field = ''): unknown {
  const { def } = schema._zod as { def: z.core.$ZodTypes['_zod']['def'] }
  switch (def.type) {
    case 'string':
      return pick(random() < 0.8 ? (special[field] ?? words) : words, random)
    case 'number':
      return pick(numbers, random)
    case 'boolean':
      return random() < 0.5
    case 'null':
      return null
    case 'literal':
      return pick(def.values, random)
    case 'enum':
      return pick(Object.values(def.entries), random)
    case 'any':
    case 'unknown':
      return pick([{ q: 1 }, [], 'text', 1, null, { deep: { a: ['x'] } }], random)
    case 'lazy':
      return pick([1, 'x', null, [true], { a: 1 }], random)
    case 'optional':
      return random() < 0.5 ? undefined : valueOf(def.innerType, random, field)
    case 'nullable':
      return random() < 0.2 ? null : valueOf(def.innerType, random, field)
    case 'default':
      return valueOf(def.innerType, random, field)
    case 'pipe':
      return valueOf(def.in, random, field)
    case 'array':
      return Array.from({ length: Math.floor(random() * 3) }, () => valueOf(def.element, random, field))
    case 'record':
      return Object.fromEntries(
        words.slice(0, Math.floor(random() * 3)).map((key) => [key, valueOf(def.valueType, random)]),
      )
    case 'intersection':
      return { ...(valueOf(def.left, random) as object), ...(valueOf(def.right, random) as object) }
    case 'union':
      return valueOf(pick(def.options, random), random, field)
    case 'object': {
      const fields = Object.entries(def.shape).map(([key, type]) => [key, valueOf(type, random, key)] as const)
      return Object.fromEntries(fields.filter(([, value]) => value !== undefined))
    }
    default:
      throw new Error(`no sample of ${def.type}`)
  }
}
