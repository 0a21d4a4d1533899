/**
 * Ids of tool calls as OpenAI's own: `call_` with letters and digits, at most 40 characters. Some clients rename others in the conversation that
 * they send back (Factory's Droid makes `call_01A…_0` of Anthropic's `toolu_01A…`), and a call that has another name is another call.
 *
 * An id of that form stays. Of others up to 31 usual characters are written as a number: they are read back by themselves, because some providers
 * take no id but their own (Mistral), or answer worse (Kimi). A longer id gets a hash, and is found among the calls of a recording.
 *
 * The form of a form is itself. So whoever compares two ids by their forms need not know which of both a client has sent, and a server whose
 * model is another Millrace sends that one's ids on.
 */
const form = /^call_[0-9A-Za-z]{1,35}$/u

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const usual = `${digits}_-.:`
const written = 'call_mrx'
const hashed = 'call_mrh'

export function toOpenAiCallId(id: string): string {
  if (form.test(id)) return id
  if (/^[\w.:-]{1,31}$/u.test(id)) return `${written}${toText(toNumber(id, usual), digits)}`
  return `${hashed}${toText(hashOf(id), digits)}`
}

/** Undoes {@link toOpenAiCallId}, except of a hash. Any other id is returned as it is. */
export function fromOpenAiCallId(name: string): string {
  if (!name.startsWith(written) || !form.test(name)) return name
  const id = toText(toNumber(name.slice(written.length), digits), usual)
  // A model's own id may begin like this.
  return toOpenAiCallId(id) === name ? id : name
}

/** With digits from 1 on, so that each text is another number and each number a text. */
function toNumber(text: string, alphabet: string): bigint {
  const base = BigInt(alphabet.length)
  let number = 0n
  for (const character of text) number = number * base + BigInt(alphabet.indexOf(character) + 1)
  return number
}

function toText(number: bigint, alphabet: string): string {
  const base = BigInt(alphabet.length)
  let text = ''
  for (let rest = number; rest > 0n; rest = (rest - 1n) / base) text = alphabet[Number((rest - 1n) % base)]! + text
  return text
}

/** The text as the digits of a number, modulo a prime of 127 bits. Nobody gains by a collision: a call counts only with its tool and arguments. */
function hashOf(text: string): bigint {
  let hash = 1n
  for (let i = 0; i < text.length; i++) hash = (hash * factor + BigInt(text.charCodeAt(i) + 1)) % prime
  return hash
}

const prime = 2n ** 127n - 1n
const factor = 0x4d1f_60b3_92e7_5ac8_17dd_3f86_b2c9_0e65n
