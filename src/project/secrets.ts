/** Finds the values in the environment and the config that must never be recorded, sent or printed. */
import { shortestSecret } from '../fold/secret-forms.ts'
import type { Secret } from '../pipeline/inlined.ts'
import type { McpHttpServer, McpServer, McpStdioServer } from '../tools/mcp/server.ts'
import type { Config } from './config.ts'
import type { Env } from './registry.ts'
import { parseJson } from '../part/json.ts'
import { isObject } from '../pipeline/json-schema/keywords.ts'

/**
 * Values that the config declares secret, environment variables whose name indicates a secret, credentials inside any
 * variable, and credentials of MCP servers and endpoints. Plain words count only if the config declares them.
 */
export function findSecrets(config: Config, env: Env): Secret[] {
  const { models, mcpServers = {}, secrets = {} } = config
  const keys = config.server?.access?.keys ?? []
  const named = new Set([
    ...(secrets.names ?? []),
    ...(models?.endpoints ?? []).map(({ apiKeyEnv }) => apiKeyEnv),
    ...keys.map(({ env: variable }) => variable),
    ...Object.values(mcpServers).flatMap(variablesOf),
  ])
  const found: Secret[] = []
  const add = (from: string, cure: string, values: readonly string[], isSure = false) => {
    for (const value of values.map((each) => each.trim())) {
      if (value.length >= shortestSecret && (isSure || !isWord(value))) found.push({ value, from, cure })
    }
  }
  for (const [name, value = ''] of Object.entries(env)) {
    const from = `the environment variable ${name}`
    const cure = `write $env.${name}, with "${name}" under "env" in the config`
    if (named.has(name)) add(from, cure, [value], true)
    else if (isSecretName(name)) add(from, cure, [value])
    if (/S$/iu.test(name) && (named.has(name) || isSecretName(name))) add(from, cure, itemsOf(value))
    add(from, cure, credentialsIn(value))
  }
  const cure = 'remove it from the text; to use it, set it as an environment variable and write $env.NAME'
  add('secrets.values in the config', cure, secrets.values ?? [], true)
  for (const [name, server] of Object.entries(mcpServers)) {
    add(`mcpServers.${name} in the config`, cure, valuesOf(server))
  }
  for (const { name, baseURL } of models?.endpoints ?? []) {
    add(`the endpoint "${name}" in the config`, cure, credentialsIn(baseURL))
  }
  add(
    'record.store in the config',
    'use the environment variable MILLRACE_STORE',
    credentialsIn(config.record?.store ?? ''),
  )
  add(
    'record.archive in the config',
    'use the environment variable MILLRACE_ARCHIVE',
    credentialsIn(config.record?.archive ?? ''),
  )
  return found
}

/** The distinct secret values. */
export function secretValues(config: Config, env: Env): string[] {
  return [...new Set(findSecrets(config, env).map(({ value }) => value))]
}

/** The variables with the secrets of its `auth`. */
function variablesOf(server: McpServer): string[] {
  // Not checked yet.
  const { clientCredentials, ...person } = (('url' in server ? server.auth : undefined) ?? {}) as Record<
    string,
    unknown
  >
  const named = [person, clientCredentials].filter((each): each is Record<string, unknown> => isObject(each))
  return named.flatMap(({ secretEnv, privateKeyEnv }) =>
    [secretEnv, privateKeyEnv].filter((each) => typeof each === 'string'),
  )
}

/** The secret values in the settings of an MCP server: by name, or because they look random. */
function valuesOf(server: McpServer): string[] {
  const { url = '', headers, args = [], env = {} } = server as Partial<McpHttpServer & McpStdioServer>
  // `env` as a list has names of variables, not values.
  const given = Object.entries({ ...headers, ...(Array.isArray(env) ? {} : env) }) as [string, unknown][]
  const pairs = [...given, ...flagsOf(args)].filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  return [
    ...credentialsIn(url),
    ...pairs.flatMap(([name, value]) => [
      ...(isSecretName(name) || looksRandom(value) ? [value] : []),
      ...inHeader(value),
      ...credentialsIn(value),
    ]),
  ]
}

/** `--api-key x` and `--api-key=x` as name and value; any other argument is a value without a name. */
function flagsOf(args: readonly string[]): [string, string][] {
  return args.flatMap((arg, i): [string, string][] => {
    const [, name, value] = /^--?([\w-]+)=(.*)$/su.exec(arg) ?? []
    if (name !== undefined) return [[name, value!]]
    const flag = /^--?([\w-]+)$/u.exec(args[i - 1] ?? '')?.[1]
    return [[arg.startsWith('-') ? '' : (flag ?? ''), arg]]
  })
}

/** Recognizes secrets: by the name of a variable, by the form of a value, and as credentials inside a longer value. */
const words =
  'API_?KEYS?|KEYS?|TOKENS?|SECRETS?|(?<!BY|COM)PASS(?:WORDS?|WD|PHRASES?)?|CREDENTIALS?|CREDS?|AUTH|AUTHORIZATION|COOKIES?|BEARER|SIGNATURE'
// Only as whole words: not COMPAT, WINDOWPWD. PWD and OLDPWD are the shell's working directories.
const short = '(?<![A-Z])(?:JWTS?|PATS?|DSN|SAS)|(?<!^(?:OLD)?)PWD'
const secretWord = new RegExp(String.raw`(?:${words}|${short})(?:[_-]|\d|$)`, 'iu')

/** `COOKIE_POLICY`, `TOKEN_TTL`: settings related to a secret, not secrets themselves. */
const setting =
  /[_-](?:POLICY|MODE|TYPE|KIND|TTL|EXPIRY|EXPIRES|EXPIRATION|LIFETIME|TIMEOUT|AGE|HOST|PORT|URL|URI|ENDPOINT|USER|USERNAME|EMAIL|FILE|PATH|DIR|SOCK|HEADER|NAME|DOMAIN|SAMESITE|SAME_SITE|SECURE|HTTPONLY|ALGORITHM|ALG|ISSUER|AUDIENCE|LIMIT|LENGTH|SIZE|COUNT|ENABLED|DISABLED|REQUIRED|PREFIX|PROVIDER|REGION|VERSION|FORMAT|SCOPES?|REALM|METHOD|STRATEGY|BACKEND|DRIVER|BUDGET)$/iu

/** Whether the name of a variable, header or parameter indicates a secret. */
function isSecretName(name: string): boolean {
  // Split camelCase into words: `accessToken`, `apiKeyId`.
  const apart = name.replaceAll(/([a-z\d])([A-Z])/gu, '$1_$2')
  return (secretWord.test(name) || secretWord.test(apart)) && !setting.test(apart)
}

/** Common setting values and placeholders. Redacting these would garble ordinary text. */
const common = new Set(
  'anonymous changeme credentials default development disabled enabled localhost optional password postgres production required same-origin strict-origin undefined username'.split(
    ' ',
  ),
)

/** Whether a value is a short word, a small number or a common value: never a secret, whatever its name. */
function isWord(value: string): boolean {
  return /^(?:\p{L}{0,7}|[\d.,:%-]{0,7})$/u.test(value) || common.has(value.toLowerCase())
}

/** Whether a value looks random enough to be a secret whatever its name. */
function looksRandom(value: string): boolean {
  return value.length >= 16 && /^[\w.~+=-]+$/u.test(value) && /\d/u.test(value) && /\p{L}/u.test(value)
}

/** The items of `a,b` or `["a", "b"]`, for names in the plural. */
function itemsOf(value: string): string[] {
  return value.split(/[\s,;"'[\]]+/u).filter((item) => item !== '' && item !== value)
}

/** The token of a `Bearer` header, and the decoded password of a `Basic` one. */
function inHeader(value: string): string[] {
  const [, scheme, rest] = /^\s*(Bearer|Basic|Token|ApiKey)\s+(\S.*)$/isu.exec(value) ?? []
  if (rest === undefined) return []
  if (scheme!.toLowerCase() !== 'basic') return [rest]
  try {
    const [, password] = /^[^:]*:(.+)$/su.exec(atob(rest.trim())) ?? []
    return password === undefined ? [rest] : [rest, password]
  } catch {
    return [rest]
  }
}

/** Credentials inside any value: in URLs, connection strings and JSON; each as written and percent-decoded. */
export function credentialsIn(value: string): string[] {
  return [...inUrls(value), ...inPairs(value), ...inJson(value), ...ownKeys(value)].flatMap((written) => {
    try {
      return [written, decodeURIComponent(written)]
    } catch {
      return [written]
    }
  })
}

/** Keys of Millrace, which `millrace keys add` makes. */
function ownKeys(value: string): string[] {
  return value.match(/\bmr_[\w-]{43}(?![\w-])/gu) ?? []
}

function inUrls(value: string): string[] {
  return [...value.matchAll(/[a-z][\w+.-]*:\/\/([^\s/?#"']*)@/giu)].flatMap(([, userinfo]) => {
    const colon = userinfo!.indexOf(':')
    // Without a password the name is the token: https://ghp_…@github.com.
    if (colon < 0) return looksRandom(userinfo!) ? [userinfo!] : []
    return [userinfo!.slice(colon + 1)]
  })
}

/** `?api_key=…`, `;AccountKey=…`, `password=…`. */
function inPairs(value: string): string[] {
  const found: string[] = []
  // A value ends at `&` in a URL, at `;` in a connection string.
  for (const [, name, quoted, bare] of value.matchAll(/(?<=^|[?&;\s])([\w.-]+)=(?:"([^"]*)"|([^&;\s"'#]+))/gu)) {
    if (/^(?:sig|sas|sharedaccess\w*|accountkey|pwd|pass)$/iu.test(name!) || isSecretName(name!)) {
      found.push(quoted ?? bare!)
    }
  }
  return found
}

function inJson(value: string): string[] {
  if (!/^\s*\{/u.test(value)) return []
  const found: string[] = []
  try {
    parseJson(value, (key, inner: unknown) => {
      if (typeof inner === 'string' && isSecretName(key)) found.push(inner)
      return inner
    })
  } catch {
    // Not JSON.
  }
  return found
}
