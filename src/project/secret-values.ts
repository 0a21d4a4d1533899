/** Recognizes secrets: by the name of a variable, by the form of a value, and as credentials inside a longer value. */
import { parseJson } from '../part/json.ts'

const words =
  'API_?KEYS?|KEYS?|TOKENS?|SECRETS?|(?<!BY|COM)PASS(?:WORDS?|WD|PHRASES?)?|CREDENTIALS?|CREDS?|AUTH|AUTHORIZATION|COOKIES?|BEARER|SIGNATURE'
// Only as whole words: not COMPAT, WINDOWPWD. PWD and OLDPWD are the shell's working directories.
const short = '(?<![A-Z])(?:JWTS?|PATS?|DSN|SAS)|(?<!^(?:OLD)?)PWD'
const secretWord = new RegExp(String.raw`(?:${words}|${short})(?:[_-]|\d|$)`, 'iu')

/** `COOKIE_POLICY`, `TOKEN_TTL`: settings related to a secret, not secrets themselves. */
const setting =
  /[_-](?:POLICY|MODE|TYPE|KIND|TTL|EXPIRY|EXPIRES|EXPIRATION|LIFETIME|TIMEOUT|AGE|HOST|PORT|URL|URI|ENDPOINT|USER|USERNAME|EMAIL|FILE|PATH|DIR|SOCK|HEADER|NAME|DOMAIN|SAMESITE|SAME_SITE|SECURE|HTTPONLY|ALGORITHM|ALG|ISSUER|AUDIENCE|LIMIT|LENGTH|SIZE|COUNT|ENABLED|DISABLED|REQUIRED|PREFIX|PROVIDER|REGION|VERSION|FORMAT|SCOPES?|REALM|METHOD|STRATEGY|BACKEND|DRIVER|BUDGET)$/iu

/** Whether the name of a variable, header or parameter indicates a secret. */
export function isSecretName(name: string): boolean {
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
export function isWord(value: string): boolean {
  return /^(?:\p{L}{0,7}|[\d.,:%-]{0,7})$/u.test(value) || common.has(value.toLowerCase())
}

/** Whether a value looks random enough to be a secret whatever its name. */
export function looksRandom(value: string): boolean {
  return value.length >= 16 && /^[\w.~+=-]+$/u.test(value) && /\d/u.test(value) && /\p{L}/u.test(value)
}

/** The items of `a,b` or `["a", "b"]`, for names in the plural. */
export function itemsOf(value: string): string[] {
  return value.split(/[\s,;"'[\]]+/u).filter((item) => item !== '' && item !== value)
}

/** The token of a `Bearer` header, and the decoded password of a `Basic` one. */
export function inHeader(value: string): string[] {
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
  return [...inUrls(value), ...inPairs(value), ...inJson(value)].flatMap((written) => {
    try {
      return [written, decodeURIComponent(written)]
    } catch {
      return [written]
    }
  })
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
