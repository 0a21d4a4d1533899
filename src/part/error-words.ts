/**
 * Describes a thrown value as text. Uses messages, not arbitrary fields: packages keep requests, headers and bodies in fields
 * (`requestBodyValues`, `responseHeaders`, `config.headers`). Credentials in a message are recognized by their form and
 * removed; known secrets are removed by value when the text is recorded.
 */

/** Maximum depth of causes, and maximum number of errors of an `AggregateError`, that are included. */
const most = 5

/** Never throws. Appends causes after `; caused by: ` and the errors of an `AggregateError` in parentheses. */
export function wordsOf(thrown: unknown): string {
  try {
    return withoutCredentials(wordsAt(thrown, 0))
  } catch {
    // A getter or a proxy that throws.
    return 'an error that cannot be read'
  }
}

function wordsAt(thrown: unknown, depth: number): string {
  if (typeof thrown !== 'object' || thrown === null) return String(thrown)
  const { message, cause } = thrown as { message?: unknown; cause?: unknown }
  const own = typeof message === 'string' && message !== '' ? nameOf(thrown) + message : undefined
  const inside = depth < most && thrown instanceof AggregateError ? thrown.errors.slice(0, most) : []
  const beside = inside.map((each: unknown) => wordsAt(each, depth + 1)).join('; ')
  const text =
    [own, beside && (own === undefined ? beside : `(${beside})`)].filter(Boolean).join(' ') || fieldsOf(thrown)
  if (cause === undefined || cause === null || depth >= most) return text
  const why = wordsAt(cause, depth + 1)
  // Many packages repeat their cause in their own message.
  return text.includes(why) ? text : `${text}; caused by: ${why}`
}

/** `TypeError: `; empty for a plain `Error` and for values that are not errors. */
function nameOf(thrown: object): string {
  const { name } = thrown as { name?: unknown }
  return thrown instanceof Error && typeof name === 'string' && name !== 'Error' && name !== '' ? `${name}: ` : ''
}

const untold = /auth|cookie|key|token|secret|pass|credential|header|body|request/iu

/** Describes a value without a message by its primitive fields, such as `code`. */
function fieldsOf(thrown: object): string {
  const plain = Object.entries(thrown).filter(([name, value]) => {
    return ['string', 'number', 'boolean'].includes(typeof value) && !untold.test(name)
  })
  if (plain.length > 0) return JSON.stringify(Object.fromEntries(plain))
  return thrown instanceof Error ? thrown.name : 'an object without a message'
}

/** Removes user names and passwords in URLs, the values of secret URL parameters, and tokens after `Bearer` or `Basic`. */
export function withoutCredentials(text: string): string {
  return text
    .replaceAll(/\b([a-z][\w+.-]{1,20}:\/\/)[^\s/?#]{1,500}@/giu, '$1')
    .replaceAll(/([?&][\w.-]{0,50}(?:key|token|secret|signature|sig|password|auth)=)[^&\s#"']+/giu, '$1…')
    .replaceAll(/\b(Bearer|Basic)\s+(?:(?=\S*\d)[\w.~+/=-]{6,}|[\w.~+/=-]{16,})/giu, '$1 …')
}
