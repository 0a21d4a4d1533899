/**
 * One schema per construct of an agent file. They are given all scalars as text and say what type each one is, so that
 * `7` and `"7"` mean the same and `stream: maybe` is a fault.
 */
import { z } from 'zod'
import type { Message } from '../part/message.ts'
import type { LlmConfig, ToolUse } from './llm-config.ts'
import { didYouMean } from './nearest.ts'
import type { Pipeline } from './pipeline.ts'
import { wholeReference } from './reference.ts'

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
// setTimeout takes 31 bits: anything longer fires at once.
const longestDuration = 24 * units.d

const text = z.string('must be text')
const name = text.min(1, 'is empty; give it a name or remove the key')
const flag = z.preprocess(
  (value) => (value === 'true' ? true : value === 'false' ? false : value),
  z.boolean('must be true or false'),
)
const numeral = /^[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function toNumber(value: unknown): unknown {
  return typeof value === 'string' && numeral.test(value) ? Number(value) : value
}
function number(min: number, max = Infinity) {
  const words = max === Infinity ? `must be a number from ${min}` : `must be a number from ${min} to ${max}`
  return z.preprocess(toNumber, z.number(words).min(min, words).max(max, words))
}
function integer(min: number, max = Number.MAX_SAFE_INTEGER) {
  const words = `must be a whole number from ${min}${max === Number.MAX_SAFE_INTEGER ? '' : ` to ${max}`}`
  return z.preprocess(toNumber, z.int(words).min(min, words).max(max, words))
}

const durationWords = 'must be a duration such as 500ms, 30s, 5m or a number of ms, at most 24d'
function duration(min: number) {
  return z.preprocess(
    toMilliseconds,
    z.number(durationWords).min(min, durationWords).max(longestDuration, durationWords),
  )
}
function toMilliseconds(value: unknown): unknown {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/.exec(value) : null
  return match ? Math.round(Number(match[1]) * units[(match[2] ?? 'ms') as keyof typeof units]) : value
}

function oneOf<const T extends readonly [string, ...string[]]>(values: T) {
  return z.enum(values, {
    error: ({ input }) =>
      `must be one of ${values.join(', ')}${typeof input === 'string' ? didYouMean(input, values) : ''}`,
  })
}

// For an unknown key the message carries the known ones, from which check.ts makes its own.
function map<T extends z.ZodRawShape>(shape: T) {
  const keys = Object.keys(shape).join(', ')
  return z.strictObject(shape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? keys : `must be a map with the keys ${keys}`),
  })
}
function list<T extends z.ZodType>(item: T) {
  return z.array(item, 'must be a list (lines that begin with "- ", or [a, b])')
}

const callback = name.optional()
const textPart = map({ type: z.literal('text'), text })
const filePart = map({ type: z.literal('file'), mediaType: name, data: name, filename: name.optional() })
const contentWords = 'must be text, or a list of parts {type: text, text} or {type: file, mediaType, data}'
const userPart = z.discriminatedUnion('type', [textPart, filePart], {
  error: ({ note }) => (note ? 'must be text or file' : contentWords),
})
const messageWords = 'must be {role, content} with the role system, user or assistant'
const message = z.discriminatedUnion(
  'role',
  [
    map({ role: z.literal('system'), content: text }),
    map({ role: z.literal('user'), content: z.union([text, list(userPart)], contentWords) }),
    map({ role: z.literal('assistant'), content: z.union([text, list(textPart)], contentWords) }),
  ],
  // The same union speaks of its discriminator (an unknown role) and of the whole (no map at all).
  { error: ({ note }) => (note ? 'must be system, user or assistant' : messageWords) },
) satisfies z.ZodType<Message>

const messagesWords = 'must be a reference such as $input.messages, or a list of {role, content}'
const toolUse = z.preprocess(
  (value) => (typeof value === 'string' ? { name: value } : value),
  map({ name, description: text.optional(), approval: flag.optional(), timeout: duration(1).optional() }),
) satisfies z.ZodType<ToolUse>

export const llmConfig = map({
  model: name.optional(),
  system: text.optional(),
  messages: z
    .union([text.refine((value) => wholeReference(value) !== undefined, messagesWords), list(message)], messagesWords)
    .default('$input.messages'),
  stream: flag.default(false),
  stage: name.optional(),
  tools: list(toolUse).default([]),
  toolChoice: z
    .union([oneOf(['auto', 'none', 'required']), map({ tool: name })], 'must be auto, none, required or {tool: name}')
    .optional(),
  maxSteps: integer(1, 1000).default(5),
  temperature: number(0).optional(),
  maxOutputTokens: integer(1).optional(),
  topP: number(0, 1).optional(),
  stopSequences: list(text).optional(),
  seed: integer(-Number.MAX_SAFE_INTEGER).optional(),
  reasoning: oneOf(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).optional(),
  providerOptions: z
    .record(z.string(), z.record(z.string(), z.unknown(), 'must be a map'), 'must be a map: provider → its options')
    .optional(),
  headers: z.record(z.string(), text, 'must be a map: header → text').optional(),
  retries: integer(0, 20).default(2),
  onChunk: callback,
  onStepFinish: callback,
  onFinish: callback,
  onError: callback,
  onAbort: callback,
}) satisfies z.ZodType<LlmConfig>

export const outputConfig = map({ template: z.unknown().optional(), json: text.optional() })

/** What every step has; its `config` is checked by its type. */
export const step = map({
  id: name
    .max(100, 'is longer than 100 characters')
    .regex(/^(?!\.+$)[A-Za-z0-9._-]+$/, 'must be made of letters, digits, "-", "_" and "."'),
  type: name,
  config: z.unknown().optional(),
  result: name
    .regex(/^(?!\d)\w+(?:-+\w+)*$/, 'must be a name: letters, digits, "_" and inner "-", no digit first')
    .refine((value) => !reserved.has(value), `is reserved (input, env, stepResult); choose another name`)
    .optional(),
})
const reserved = new Set(['input', 'env', 'stepResult'])

/** The file around its steps. `workflow` and `after` are lists whose items {@link step} checks one by one. */
export const file = map({
  metadata: map({
    name: text.optional(),
    version: text.optional(),
    description: text.optional(),
    aliases: list(name).optional(),
  }).default({}),
  workflow: list(z.unknown()).min(1, 'has no steps; add one: - { id: answer, type: llm }'),
  after: list(z.unknown()).default([]),
  return: z.unknown().optional(),
  onDisconnect: z
    .union(
      [oneOf(['cancel', 'detach']), map({ cancelAfter: duration(0) })],
      'must be cancel, detach or {cancelAfter: 15s}',
    )
    .optional(),
  onBusy: oneOf(['interrupt', 'queue', 'reject']).optional(),
  history: oneOf(['client', 'server']).optional(),
  recover: flag.default(false),
}) satisfies z.ZodType<Omit<Pipeline, 'text' | 'workflow' | 'after'>>
