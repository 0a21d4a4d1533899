/** Validates a config before anything uses it, and reports every mistake at once. */
import { MillraceError } from '../part/error.ts'
import { shortestSecret } from '../fold/secret-forms.ts'
import { didYouMean, listNames } from '../pipeline/nearest.ts'
import type { EndpointProtocol } from '../models/providers.ts'
import type { Endpoint } from '../models/resolver.ts'
import type { Pricing } from '../models/language-model.ts'
import type { Config, LimitsConfig, OpenAiConfig, RecordConfig, SecretsConfig, ServerConfig } from './config.ts'
import type { DefaultTimeouts } from '../engine/time-limits.ts'
import { ownValue } from '../part/own-value.ts'

export const endpointProtocols = [
  'openai-chat',
  'openai-responses',
  'anthropic',
  'google',
] as const satisfies EndpointProtocol[]

/** Appends to `faults`; `at` is the full path of the key. */
type Rule = (value: unknown, at: string, faults: string[]) => void
type Rules<T> = Record<keyof Required<T>, Rule>

/** The longest delay that timers accept; longer ones fire at once. */
const longest = 2 ** 31 - 1
const ms = wholeNumber(1, longest)
const timeLimit = must(
  'a whole number of ms from 1, or "none"',
  (value) => value === 'none' || (Number.isSafeInteger(value) && (value as number) >= 1),
)
const names = must('an object keyed by name', isObject)
const text = must('a non-empty string', isText)
const usd = must('an amount in USD from 0', (value) => typeof value === 'number' && value >= 0)

const openai: Rules<OpenAiConfig> = {
  extensions: listOf(oneOf(['tools', 'trace'])),
  traceKey: must('a name that the protocol does not use itself', isTraceKey),
  streamToolOutputMaxChars: wholeNumber(0, Number.MAX_SAFE_INTEGER),
}

const server: Rules<ServerConfig> = {
  port: wholeNumber(0, 65_535),
  host: text,
  maxBodyBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  keepAliveMs: ms,
  graceMs: wholeNumber(0, longest),
  stopGraceMs: wholeNumber(0, longest),
  allowedOrigins: listOf(must('an origin such as "https://app.example"', isOrigin)),
  openai: keys(openai),
}

const limits: Rules<LimitsConfig> = {
  lineBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  bodyBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  answerChars: wholeNumber(1, Number.MAX_SAFE_INTEGER),
}

const record: Rules<RecordConfig> = {
  data: text,
  logFiles: must('true or false', (value) => typeof value === 'boolean'),
  busyTimeoutMs: wholeNumber(0, longest),
}

const secrets: Rules<SecretsConfig> = {
  names: listOf((value, at, faults) => {
    // The message omits the value: it may be the secret itself.
    if (!isText(value) || !/^\w+$/u.test(value)) faults.push(`${at} must be the name of an environment variable.`)
  }),
  values: listOf((value, at, faults) => {
    if (isText(value) && value.trim().length >= shortestSecret) return
    faults.push(
      `${at} must be a string of at least ${shortestSecret} characters: shorter values occur in ordinary words.`,
    )
  }),
}

const endpoint: Rules<Endpoint> = {
  name: text,
  // The messages omit the values: a URL may contain a password, and `apiKeyEnv` the key itself.
  baseURL: (value, at, faults) => {
    if (!isText(value)) faults.push(`${at} must be a non-empty string.`)
  },
  apiKeyEnv: (value, at, faults) => {
    if (isText(value) && /^\w+$/u.test(value)) return
    faults.push(`${at} must be the name of an environment variable that holds the key, never the key itself.`)
  },
  protocol: oneOf(endpointProtocols),
}

const models: Rules<NonNullable<Config['models']>> = {
  default: text,
  endpoints: listOf(keys(endpoint, ['name', 'baseURL'])),
  providers: names,
}

const config: Rules<Config> = {
  tools: names,
  callbacks: names,
  steps: names,
  packs: must('a list of modules', Array.isArray),
  models: keys(models),
  env: listOf(must('the name of an environment variable', isText)),
  secrets: keys(secrets),
  mcpServers: names,
  pricing: each(keys<Pricing>({ input: usd, output: usd }, ['input', 'output'])),
  limits: keys(limits),
  requestDeadlineMs: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  timeouts: keys<DefaultTimeouts>({ firstToken: timeLimit, idle: timeLimit, run: timeLimit }),
  server: keys(server),
  record: keys(record),
}

/** Throws `bad-config` with one line per mistake. */
export function checkConfig(given: Config): void {
  const faults: string[] = []
  keys(config)(given, '', faults)
  if (faults.length > 0) throw new MillraceError('bad-config', faults.join('\n'))
}

function keys<T>(rules: Rules<T>, required: readonly (keyof T & string)[] = []): Rule {
  const known = Object.keys(rules)
  return (value, at, faults) => {
    if (!isObject(value)) return void faults.push(`${at} must be an object.`)
    const prefix = at === '' ? '' : `${at}.`
    for (const [key, inner] of Object.entries(value)) {
      const rule = ownValue<Rule>(rules, key)
      if (rule === undefined) {
        const place = at === '' ? 'Settings' : `Settings of ${at}`
        faults.push(`${prefix}${key} is not a known setting${didYouMean(key, known)}. ${place}: ${listNames(known)}.`)
      } else if (inner !== undefined) rule(inner, prefix + key, faults)
    }
    for (const key of required) if (ownValue(value, key) === undefined) faults.push(`${prefix}${key} is missing.`)
  }
}

function each(rule: Rule): Rule {
  return (value, at, faults) => {
    names(value, at, faults)
    if (isObject(value)) for (const [name, inner] of Object.entries(value)) rule(inner, `${at}["${name}"]`, faults)
  }
}

function listOf(rule: Rule): Rule {
  return (value, at, faults) => {
    if (!Array.isArray(value)) return void faults.push(`${at} must be a list.`)
    value.forEach((inner, i) => rule(inner, `${at}[${i}]`, faults))
  }
}

function oneOf(known: readonly string[]): Rule {
  return (value, at, faults) => {
    if (known.includes(value as string)) return
    const meant = typeof value === 'string' ? didYouMean(value, known) : ''
    faults.push(`${at} must be one of ${listNames(known)}, not ${show(value)}${meant}.`)
  }
}

function wholeNumber(min: number, max: number): Rule {
  const holds = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
  return must(`a whole number from ${min} to ${max}`, holds)
}

function must(what: string, holds: (value: unknown) => boolean): Rule {
  return (value, at, faults) => {
    if (!holds(value)) faults.push(`${at} must be ${what}, not ${show(value)}.`)
  }
}

function show(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? 'a long string' : `the string ${JSON.stringify(value)}`
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' && value !== null
    ? 'an object'
    : typeof value === 'function'
      ? 'a function'
      : String(value)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}

/** A name that is not one of a frame's own keys. */
function isTraceKey(value: unknown): boolean {
  const own = ['id', 'object', 'created', 'model', 'choices', 'usage', 'error']
  return isText(value) && /^[A-Za-z][\w-]*$/u.test(value) && !own.includes(value)
}

function isOrigin(value: unknown): boolean {
  return isText(value) && /^https?:/u.test(value) && URL.canParse(value) && new URL(value).origin === value
}
