/**
 * Validates a config before anything uses it, and reports every mistake at once. `settings` makes the compiler compare the
 * schema with the types in config.ts. These are not derived from it: that would lose their descriptions, which editors show.
 */
import { z } from 'zod'
import { MillraceError } from '../part/error.ts'
import { shortestSecret } from '../fold/secret-forms.ts'
import { didYouMean, listNames } from '../pipeline/nearest.ts'
import type { EndpointProtocol } from '../models/providers.ts'
import type { Endpoint } from '../models/resolver.ts'
import type { Pricing } from '../models/language-model.ts'
import type { Config, LimitsConfig, OpenAiConfig, RecordConfig, SecretsConfig, ServerConfig } from './config.ts'
import type { DefaultTimeouts } from '../engine/time-limits.ts'

export const endpointProtocols = [
  'openai-chat',
  'openai-responses',
  'anthropic',
  'google',
] as const satisfies EndpointProtocol[]

/** The longest delay that timers accept; longer ones fire at once. */
const longest = 2 ** 31 - 1
const ms = wholeNumber(1, longest)
const size = wholeNumber(1, Number.MAX_SAFE_INTEGER)
const timeLimit = z.custom<number | 'none'>(
  (value) => value === 'none' || (Number.isSafeInteger(value) && (value as number) >= 1),
  must('a whole number of ms from 1, or "none"'),
)
const text = nonEmpty('a non-empty string')
const flag = z.boolean(must('true or false'))
const usd = z.number(must('an amount in USD from 0')).min(0, must('an amount in USD from 0'))

const openai = settings<OpenAiConfig>({
  extensions: list(oneOf(['tools', 'trace'])),
  traceKey: z.custom<string>(isTraceKey, must('a name that the protocol does not use itself')),
  streamToolOutputMaxChars: wholeNumber(0, Number.MAX_SAFE_INTEGER),
})

const server = settings<ServerConfig>({
  port: wholeNumber(0, 65_535),
  host: text,
  maxBodyBytes: size,
  keepAliveMs: ms,
  graceMs: wholeNumber(0, longest),
  stopGraceMs: wholeNumber(0, longest),
  allowedOrigins: list(z.custom<string>(isOrigin, must('an origin such as "https://app.example"'))),
  openai,
})

const secrets = settings<SecretsConfig>({
  names: list(variableName('must be the name of an environment variable')),
  values: list(
    z.custom<string>(
      (value) => typeof value === 'string' && value.trim().length >= shortestSecret,
      `must be a string of at least ${shortestSecret} characters: shorter values occur in ordinary words`,
    ),
  ),
})

const endpoint = settings<Endpoint>(
  {
    name: text,
    // Not quoted: a URL may contain a password.
    baseURL: z.string(withoutValue('must be a non-empty string')).regex(/\S/u, 'must be a non-empty string'),
    apiKeyEnv: variableName('must be the name of an environment variable that holds the key, never the key itself'),
    protocol: oneOf(endpointProtocols),
  },
  ['name', 'baseURL'],
)

const config = settings<Config>({
  tools: named(),
  callbacks: named(),
  steps: named(),
  packs: z.custom<NonNullable<Config['packs']>>(Array.isArray, must('a list of modules')),
  models: settings<NonNullable<Config['models']>>({ default: text, endpoints: list(endpoint), providers: named() }),
  env: list(nonEmpty('the name of an environment variable')),
  secrets,
  mcpServers: named(),
  pricing: z.record(
    z.string(),
    settings<Pricing>({ input: usd, output: usd }, ['input', 'output']),
    must('an object keyed by name'),
  ),
  limits: settings<LimitsConfig>({ lineBytes: size, bodyBytes: size, answerChars: size }),
  requestDeadlineMs: size,
  timeouts: settings<DefaultTimeouts>({ firstToken: timeLimit, idle: timeLimit, run: timeLimit }),
  server,
  record: settings<RecordConfig>({ data: text, logFiles: flag, busyTimeoutMs: wholeNumber(0, longest) }),
})

/** Throws `bad-config` with one line per mistake. */
export function checkConfig(given: Config): void {
  const { error } = config.safeParse(given)
  if (error === undefined) return
  throw new MillraceError('bad-config', [...new Set(error.issues.flatMap(linesOf))].join('\n'))
}

function linesOf(issue: z.core.$ZodIssue): string[] {
  const at = issue.path.reduce<string>((place, key, i) => place + step(key, i, issue.path[0] === 'pricing'), '')
  if (issue.code !== 'unrecognized_keys') return [`${at === '' ? 'The config' : at} ${issue.message}.`]
  const known = issue.message.split(' ')
  const end = `${at === '' ? 'Settings' : `Settings of ${at}`}: ${listNames(known)}.`
  const prefix = at === '' ? '' : `${at}.`
  return issue.keys.map((key) => `${prefix}${key} is not a known setting${didYouMean(key, known)}. ${end}`)
}

function step(key: PropertyKey, i: number, isByModel: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  if (isByModel && i === 1) return `["${String(key)}"]`
  return i === 0 ? String(key) : `.${String(key)}`
}

/** An object with these keys; those that are not `required` may be missing. Of unknown keys, the message lists the known ones. */
function settings<T extends object>(
  shape: { [K in keyof Required<T>]: z.ZodType<Required<T>[K]> },
  required: readonly (keyof T)[] = [],
): z.ZodType<T> {
  const known = Object.keys(shape) as (keyof T & string)[]
  const fields = known.map((key) => [key, required.includes(key) ? shape[key] : shape[key].optional()] as const)
  const checked = z.strictObject(Object.fromEntries(fields), {
    error: ({ code }) => (code === 'unrecognized_keys' ? known.join(' ') : 'must be an object'),
  })
  return checked as z.ZodType<object> as z.ZodType<T>
}

function list<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return z.array(item, 'must be a list')
}

/** What stands in it is checked by those who use it. */
function named<T>(): z.ZodType<Record<string, T>> {
  return z.custom<Record<string, T>>(isObject, must('an object keyed by name'))
}

function oneOf<const T extends string>(known: readonly T[]): z.ZodType<T> {
  const meant = (value: unknown) => (typeof value === 'string' ? didYouMean(value, known) : '')
  return z.literal(known, must(`one of ${listNames(known)}`, meant))
}

function nonEmpty(what: string): z.ZodType<string> {
  return z.string(must(what)).regex(/\S/u, must(what))
}

function wholeNumber(min: number, max: number): z.ZodType<number> {
  const error = must(`a whole number from ${min} to ${max}`)
  return z.int(error).min(min, error).max(max, error)
}

/** The message omits the value: it may be the secret itself. */
function variableName(message: string): z.ZodType<string> {
  return z.string(withoutValue(message)).regex(/^\w+$/u, message)
}

function withoutValue(message: string) {
  return { error: ({ input }: { readonly input?: unknown }) => (input === undefined ? 'is missing' : message) }
}

/** Parameters of a schema: its one message, whatever is wrong with the value. */
function must(what: string, meant: (value: unknown) => string = () => '') {
  const error = ({ input }: { readonly input?: unknown }) =>
    input === undefined ? 'is missing' : `must be ${what}, not ${show(input)}${meant(input)}`
  return { error }
}

function show(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? 'a long string' : `the string ${JSON.stringify(value)}`
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A name that is not one of a frame's own keys. */
function isTraceKey(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    /^[A-Za-z][\w-]*$/u.test(value) &&
    !/^(id|object|created|model|choices|usage|error)$/u.test(value)
  )
}

function isOrigin(value: unknown): boolean {
  return typeof value === 'string' && /^https?:/u.test(value) && URL.parse(value)?.origin === value
}
