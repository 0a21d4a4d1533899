/**
 * Validates a config before anything uses it, and reports every mistake at once. `settings` makes the compiler compare the
 * schema with the types in config.ts. These are not derived from it: that would lose their descriptions, which editors show.
 */
import { z } from 'zod'
import { MillraceError } from '../part/error.ts'
import { shortestSecret } from '../fold/secret-forms.ts'
import { lazily } from '../pipeline/lazily.ts'
import { didYouMean, listNames } from '../pipeline/nearest.ts'
import type { EndpointProtocol } from '../models/providers.ts'
import type { Endpoint } from '../models/resolver.ts'
import type { Pricing } from '../models/language-model.ts'
import type {
  AccessConfig,
  Config,
  ConfiguredKey,
  JwtConfig,
  LimitsConfig,
  LoginConfig,
  McpConfig,
  OpenAiConfig,
  MessagesConfig,
  ResponsesConfig,
  RateLimitConfig,
  RecordConfig,
  SecretsConfig,
  ServerConfig,
  TelemetryConfig,
} from './config.ts'
import type { Quota, QuotasConfig } from '../part/quota.ts'
import type { OtlpConfig } from '../record/otlp/settings.ts'
import { ageOf, ageWords, sizeOf, sizeWords, type RetentionConfig } from '../record/policy.ts'
import { roles } from '../part/principal.ts'
import { endOf, endWords, isKeyName, keyNameWords } from './access-values.ts'
import type { DefaultTimeouts } from '../engine/limits.ts'

/** An object, so that the compiler reports a missing one. */
const isProtocol: Record<EndpointProtocol, true> = {
  'openai-chat': true,
  'openai-responses': true,
  anthropic: true,
  google: true,
}
export const endpointProtocols = Object.keys(isProtocol) as EndpointProtocol[]

/** The longest delay that timers accept; longer ones fire at once. */
const longest = 2 ** 31 - 1
const ms = wholeNumber(1, longest)
const size = wholeNumber(1, Number.MAX_SAFE_INTEGER)
const timeLimit = rule<number | 'none'>('a whole number of ms from 1, or "none"', (value) => {
  return value === 'none' || (Number.isSafeInteger(value) && (value as number) >= 1)
})
const text = rule<string>('a non-empty string', isText)
const flag = rule<boolean>('true or false', (value) => typeof value === 'boolean')
const keyName = rule<string>('the name of a key', (value) => isText(value) && /[^-_\s]/u.test(value))
const usd = rule<number>('an amount in USD from 0', (value) => Number.isFinite(value) && (value as number) >= 0)

// These messages omit the value: it may be the secret itself, and a URL may contain a password.
const address = secretRule('must be a non-empty string', isText)
const variable = secretRule('must be the name of an environment variable', isVariable)
const keyVariable = secretRule(
  'must be the name of an environment variable that holds the key, never the key itself',
  isVariable,
)
const secret = secretRule(
  `must be a string of at least ${shortestSecret} characters: shorter values occur in ordinary words`,
  (value) => isText(value) && value.trim().length >= shortestSecret,
)

const headers = z.custom<Record<string, string>>(isHeaders, 'must be an object of texts by name')

const schema = lazily(createSchema)

function createSchema(): z.ZodType<Config> {
  const claimNames = { user: text, tenant: text, roles: text }
  const issuer = rule<string>('a URL with https (http for this machine only)', isIssuer)

  const access = settings<AccessConfig>({
    keys: list(
      settings<ConfiguredKey>(
        {
          name: rule(keyNameWords, (value) => isText(value) && isKeyName(value)),
          env: keyVariable,
          role: oneOf([...roles]),
          tenant: text,
          agents: list(text),
          expires: rule(endWords, (value) => isText(value) && endOf(value) !== undefined),
        },
        ['name', 'env'],
      ),
    ),
    authenticate: rule('a function (request) => who it is', isFunction),
    anonymous: oneOf(['none', 'user']),
    claims: list(text),
    jwt: settings<JwtConfig>({ ...claimNames, issuer, audience: text, jwks: issuer }, ['issuer', 'audience']),
    login: settings<LoginConfig>(
      {
        ...claimNames,
        issuer,
        clientId: text,
        secretEnv: secretRule(
          'must be the name of an environment variable that holds the secret, never the secret itself',
          isVariable,
        ),
        scope: rule('scopes with "openid" among them, separated by spaces', isScope),
        url: rule('an origin such as "https://agents.example"', isOrigin),
      },
      ['issuer', 'clientId'],
    ),
  })

  const tokens = wholeNumber(1, Number.MAX_SAFE_INTEGER)
  // Sums of billionths of a USD are exact up to here.
  const money = rule<number>('an amount in USD, more than 0 and at most 1000000', (value) => {
    return Number.isFinite(value) && (value as number) >= 1e-9 && (value as number) <= 1e6
  })
  const starts = wholeNumber(1, 1_000_000)
  const quota = settings<Quota>({
    runsPerMinute: starts,
    streams: starts,
    tokensPerMinute: tokens,
    tokensPerDay: tokens,
    tokensPerMonth: tokens,
    usdPerMinute: money,
    usdPerDay: money,
    usdPerMonth: money,
  })

  const server = settings<ServerConfig>({
    port: wholeNumber(0, 65_535),
    host: text,
    maxBodyBytes: size,
    keepAliveMs: ms,
    graceMs: wholeNumber(0, longest),
    drainMs: wholeNumber(0, longest),
    stopGraceMs: wholeNumber(0, longest),
    page: flag,
    edit: rule('true, false or "token"', (value) => typeof value === 'boolean' || value === 'token'),
    allowedOrigins: list(rule('an origin such as "https://app.example"', isOrigin)),
    publicUrl: rule('an origin such as "https://agents.example"', isOrigin),
    rateLimit: settings<RateLimitConfig>({ runsPerMinute: wholeNumber(1, 1_000_000) }, ['runsPerMinute']),
    streamLimit: wholeNumber(1, 1_000_000),
    quotas: settings<QuotasConfig>({ perUser: quota, perTenant: quota, perKey: quota }),
    openai: settings<OpenAiConfig>({
      extensions: list(oneOf(['tools', 'trace'])),
      traceKey: rule('a name that the protocol does not use itself', isTraceKey),
      streamToolOutputMaxChars: wholeNumber(0, Number.MAX_SAFE_INTEGER),
      strict: flag,
    }),
    responses: settings<ResponsesConfig>({ serverTools: oneOf(['shown', 'hidden']) }),
    messages: settings<MessagesConfig>({ serverTools: oneOf(['shown', 'hidden']) }),
    access,
    mcp: falseOr(
      settings<McpConfig>({
        taskAfter: rule(ageWords, (value) => isAmount(value, ageOf)),
        agents: list(text),
        onCancel: oneOf(['deny', 'wait']),
        clientTools: oneOf(['unavailable', 'wait']),
      }),
    ),
  })

  const retention = settings<RetentionConfig>({
    maxAge: rule(`${ageWords}, or "none"`, (value) => value === 'none' || isAmount(value, ageOf)),
    maxBytes: rule(`${sizeWords}, or "none"`, (value) => value === 'none' || isAmount(value, sizeOf)),
  })

  const record = settings<RecordConfig>({
    store: address,
    data: text,
    logFiles: flag,
    busyTimeoutMs: wholeNumber(0, longest),
    compactAfter: rule(`${ageWords}, or "never"`, (value) => value === 'never' || isAmount(value, ageOf)),
    archive: text,
    archiveAfter: rule(`${ageWords}, or "never"`, (value) => value === 'never' || isAmount(value, ageOf)),
    retention,
  })

  const endpoint = settings<Endpoint>(
    {
      name: text,
      baseURL: address,
      apiKeyEnv: keyVariable,
      protocol: oneOf(endpointProtocols),
      systemMessages: oneOf(['anywhere', 'first']),
    },
    ['name', 'baseURL'],
  )

  const price = settings<Pricing>({ input: usd, output: usd, cachedInput: usd, cacheWriteInput: usd, reasoning: usd }, [
    'input',
    'output',
  ])

  return settings<Config>({
    tools: namedValues('a tool: {description, parameters, execute}', isTool),
    callbacks: namedValues('a function', isFunction),
    steps: namedValues('a function (config, context) => …', isFunction),
    wires: namedValues('a wire made with createWire', isObject),
    packs: rule('a list of modules', Array.isArray),
    models: settings<NonNullable<Config['models']>>({
      default: text,
      endpoints: list(endpoint),
      providers: namedValues('a function (modelId) => model', isFunction),
      decoder: oneOf(['millrace', 'package']),
      cache: oneOf(['auto', 'none', '1h']),
      windows: z.record(z.string(), wholeNumber(1000, 1e9), { error: wordsOf('an object: model → tokens') }),
    }),
    env: list(rule('the name of an environment variable', isText)),
    secrets: settings<SecretsConfig>({ names: list(variable), values: list(secret), keys: list(keyName) }),
    mcpServers: namedValues('{command, args} or {url, headers}', isObject),
    pricing: z.record(z.string(), price, { error: wordsOf('an object keyed by name') }),
    limits: settings<LimitsConfig>({ lineBytes: size, bodyBytes: size, answerChars: size, toolCalls: size }),
    requestDeadlineMs: size,
    closeThreadsAfterMs: timeLimit,
    timeouts: settings<DefaultTimeouts>({ firstToken: timeLimit, idle: timeLimit, run: timeLimit }),
    server,
    telemetry: settings<TelemetryConfig>({
      otlp: settings<OtlpConfig>({ endpoint: address, headers, serviceName: text, content: flag }, ['endpoint']),
    }),
    record,
  })
}

/** Throws `bad-config` with one line per mistake. */
export function checkConfig(given: Config): void {
  // Without a config there is nothing to check, and a start need not wait for its schema.
  if (Object.keys(given).length === 0) return
  // A config is checked once: code generated for its objects would cost more than it saves.
  const { error } = schema().safeParse(given, { jitless: true })
  if (error !== undefined) throw new MillraceError('bad-config', error.issues.flatMap(linesOf).join('\n'))
}

function linesOf(issue: z.core.$ZodIssue): string[] {
  const keys = issue.path.map((key, i) => {
    if (typeof key === 'number') return `[${key}]`
    return i === 1 && issue.path[0] === 'pricing' ? `["${String(key)}"]` : `.${String(key)}`
  })
  const at = keys.join('').slice(1)
  if (issue.code !== 'unrecognized_keys') return [`${at || 'The config'} ${issue.message}.`]
  const known = issue.message.split(' ')
  const words = `${at === '' ? 'Settings' : `Settings of ${at}`}: ${listNames(known)}.`
  return issue.keys.map((key) => {
    return `${at === '' ? '' : `${at}.`}${key} is not a known setting${didYouMean(key, known)}. ${words}`
  })
}

/** An object with these keys; those that are not `required` may be missing. Of unknown keys, the issue lists the known ones. */
function settings<T extends object>(
  shape: { [K in keyof Required<T>]: z.ZodType<Required<T>[K]> },
  required: readonly (keyof T)[] = [],
): z.ZodType<T> {
  const known = Object.keys(shape) as (keyof T & string)[]
  const fields = known.map((key) => [key, required.includes(key) ? shape[key] : shape[key].optional()])
  const checked = z.strictObject(Object.fromEntries(fields) as z.ZodRawShape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? known.join(' ') : 'must be an object'),
  })
  return checked as z.ZodType<object> as z.ZodType<T>
}

function list<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return z.array(item, 'must be a list')
}

/** `false` means that there is none. */
function falseOr<T>(schema: z.ZodType<T>): z.ZodType<false | T> {
  return z.preprocess((value) => (value === false ? {} : value), schema) as z.ZodType<false | T>
}

/** The owners of the values check their content. */
function namedValues<T>(what: string, holds: (value: unknown) => boolean): z.ZodType<Record<string, T>> {
  return z.record(z.string(), rule<T>(what, holds), { error: wordsOf('an object keyed by name') })
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

function isTool(value: unknown): boolean {
  return isObject(value) && ['undefined', 'function'].includes(typeof (value as { execute?: unknown }).execute)
}

function oneOf<const T extends string>(known: readonly T[]): z.ZodType<T> {
  const words = wordsOf(`one of ${listNames(known)}`)
  const error = ({ input }: { readonly input?: unknown }) =>
    words({ input }) + (typeof input === 'string' ? didYouMean(input, known) : '')
  return z.literal(known, { error })
}

function wholeNumber(min: number, max: number): z.ZodType<number> {
  return rule(`a whole number from ${min} to ${max}`, (value) => {
    return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
  })
}

/** `z.custom` and not `z.int().min().max()`: each link of such a chain is a schema, and a start would wait for all of them. */
function rule<T>(what: string, holds: (value: unknown) => boolean): z.ZodType<T> {
  return z.custom<T>(holds, { error: wordsOf(what) })
}

function secretRule(words: string, holds: (value: unknown) => boolean): z.ZodType<string> {
  return z.custom<string>(holds, { error: ({ input }) => (input === undefined ? 'is missing' : words) })
}

function wordsOf(what: string): (issue: { readonly input?: unknown }) => string {
  return ({ input }) => (input === undefined ? 'is missing' : `must be ${what}, not ${show(input)}`)
}

function show(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? 'a long string' : `the string ${JSON.stringify(value)}`
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}

function isHeaders(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.values(value).every((each) => typeof each === 'string')
}

function isAmount(value: unknown, read: (value: string | number) => number | undefined): boolean {
  return (typeof value === 'string' || typeof value === 'number') && read(value) !== undefined
}

function isVariable(value: unknown): boolean {
  return typeof value === 'string' && /^\w+$/u.test(value)
}

/** A name that is not one of a frame's own keys. */
function isTraceKey(value: unknown): boolean {
  const own = ['id', 'object', 'created', 'model', 'choices', 'usage', 'error']
  return typeof value === 'string' && /^[A-Za-z][\w-]*$/u.test(value) && !own.includes(value)
}

/** Keys that come without https may be anybody's. */
function isIssuer(value: unknown): boolean {
  const url = typeof value === 'string' ? URL.parse(value) : null
  if (url === null || url.hash !== '' || url.username !== '' || url.password !== '') return false
  const isHere = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/u.test(url.hostname)
  return url.protocol === 'https:' || (url.protocol === 'http:' && isHere)
}

function isScope(value: unknown): boolean {
  return typeof value === 'string' && value.split(' ').includes('openid')
}

function isOrigin(value: unknown): boolean {
  return typeof value === 'string' && /^https?:/u.test(value) && URL.parse(value)?.origin === value
}
