/**
 * What was thrown, in words. Only texts are taken, never fields: in those packages keep the request, its headers and its
 * body (`requestBodyValues`, `responseHeaders`, `config.headers`). Credentials that a text repeats are taken out by their form;
 * those that are known are found by value where the text is recorded.
 */

/** How many causes behind each other, and how many errors beside each other, are told. */
const most = 5

/** Never throws, whatever it is given. Causes stand behind `; caused by: `, what an `AggregateError` holds in brackets. */
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

/** `TypeError: `; a plain `Error`, or what is none, has no name worth telling. */
function nameOf(thrown: object): string {
  const { name } = thrown as { name?: unknown }
  return thrown instanceof Error && typeof name === 'string' && name !== 'Error' && name !== '' ? `${name}: ` : ''
}

const untold = /auth|cookie|key|token|secret|pass|credential|header|body|request/iu

/** Something thrown without a message: its plain values, such as a `code`. */
function fieldsOf(thrown: object): string {
  const plain = Object.entries(thrown).filter(([name, value]) => {
    return ['string', 'number', 'boolean'].includes(typeof value) && !untold.test(name)
  })
  if (plain.length > 0) return JSON.stringify(Object.fromEntries(plain))
  return thrown instanceof Error ? thrown.name : 'an object without a message'
}

/** The name and password of a URL, the values of its secret parameters, and what stands behind `Bearer` or `Basic`. */
export function withoutCredentials(text: string): string {
  return text
    .replaceAll(/\b([a-z][\w+.-]{1,20}:\/\/)[^\s/?#]{1,500}@/giu, '$1')
    .replaceAll(/([?&][\w.-]{0,50}(?:key|token|secret|signature|sig|password|auth)=)[^&\s#"']+/giu, '$1…')
    .replaceAll(/\b(Bearer|Basic)\s+(?:(?=\S*\d)[\w.~+/=-]{6,}|[\w.~+/=-]{16,})/giu, '$1 …')
}
