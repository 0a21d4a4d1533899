/** What looks like a secret: which names say so, which values are only words, and where credentials stand inside a value. */
import { parseJson } from '../part/json.ts'

const words =
  'API_?KEYS?|KEYS?|TOKENS?|SECRETS?|(?<!BY|COM)PASS(?:WORDS?|WD|PHRASES?)?|CREDENTIALS?|CREDS?|AUTH|AUTHORIZATION|COOKIES?|BEARER|SIGNATURE'
// Only as a word of its own: COMPAT, WINDOWPWD. PWD and OLDPWD are every shell's folders.
const short = '(?<![A-Z])(?:JWTS?|PATS?|DSN|SAS)|(?<!^(?:OLD)?)PWD'
const secretWord = new RegExp(String.raw`(?:${words}|${short})(?:[_-]|\d|$)`, 'iu')

/** `COOKIE_POLICY`, `TOKEN_TTL`: a setting that has to do with a secret. */
const setting =
  /[_-](?:POLICY|MODE|TYPE|KIND|TTL|EXPIRY|EXPIRES|EXPIRATION|LIFETIME|TIMEOUT|AGE|HOST|PORT|URL|URI|ENDPOINT|USER|USERNAME|EMAIL|FILE|PATH|DIR|SOCK|HEADER|NAME|DOMAIN|SAMESITE|SAME_SITE|SECURE|HTTPONLY|ALGORITHM|ALG|ISSUER|AUDIENCE|LIMIT|LENGTH|SIZE|COUNT|ENABLED|DISABLED|REQUIRED|PREFIX|PROVIDER|REGION|VERSION|FORMAT|SCOPES?|REALM|METHOD|STRATEGY|BACKEND|DRIVER|BUDGET)$/iu

/** Whether a variable, header or parameter of this name holds a secret. */
export function isSecretName(name: string): boolean {
  // camelCase: `accessToken` ends in a word of its own, `apiKeyId` holds one.
  const apart = name.replaceAll(/([a-z\d])([A-Z])/gu, '$1_$2')
  return (secretWord.test(name) || secretWord.test(apart)) && !setting.test(apart)
}

/** What settings say, and what stands in examples. To remove these would ruin ordinary text. */
const common = new Set(
  'anonymous changeme credentials default development disabled enabled localhost optional password postgres production required same-origin strict-origin undefined username'.split(
    ' ',
  ),
)

/** A short word, a small number, a common value: never a secret, whatever its name says. */
export function isWord(value: string): boolean {
  return /^(?:\p{L}{0,7}|[\d.,:%-]{0,7})$/u.test(value) || common.has(value.toLowerCase())
}

/** Letters and digits in disorder: a secret even under a name that says nothing. */
export function looksRandom(value: string): boolean {
  return value.length >= 16 && /^[\w.~+=-]+$/u.test(value) && /\d/u.test(value) && /\p{L}/u.test(value)
}

/** `a,b` or `["a", "b"]` under a name in the plural. */
export function itemsOf(value: string): string[] {
  return value.split(/[\s,;"'[\]]+/u).filter((item) => item !== '' && item !== value)
}

/** What follows `Bearer`, and the password that `Basic` hides. */
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

/** Credentials inside any value: in URLs, in connection strings, in JSON. As they are written, and as they are meant. */
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
  // In a URL a value ends at `&`, in a connection string at `;`.
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
    // Not JSON: nothing to find.
  }
  return found
}
