/** Short texts that a client keeps for us and must not read, such as a position over the runs of everybody. AES-GCM, with a key of the store. */
import { ownValue } from './own-value.ts'
import type { Log } from './log.ts'

export interface Seal {
  /** Another text each time, unless `alike` is set. */
  seal(text: string): Promise<string>
  /** Undefined for anything that was not sealed with the key of this store and name. */
  open(sealed: string): Promise<string | undefined>
}

const ivLength = 12

export interface SealOptions {
  /** Where the store keeps the key. Default `access:seals`. */
  inbox?: string
  /** Longer texts do not open. Default {@link longestSealed}. */
  longest?: number
  /** A text is sealed alike each time, by every instance: whoever has two sealed texts sees whether they are the same. Default false. */
  alike?: boolean
}
/** Characters of a sealed text that opens, unless a seal says otherwise. */
export const longestSealed = 2000

/** All instances of a store share the key. `name`: what is sealed; texts of another name do not open. */
export function createSeal(
  log: Pick<Log, 'post'>,
  name: string,
  { inbox = 'access:seals', longest = longestSealed, alike = false }: SealOptions = {},
): Seal {
  let key: Promise<{ bytes: Uint8Array<ArrayBuffer>; key: CryptoKey }> | undefined

  async function load() {
    const fresh = toText(crypto.getRandomValues(new Uint8Array(32)))
    // The first instance decides.
    const { message } = await log.post(inbox, name, { key: fresh })
    const stored = ownValue(message as Record<string, unknown>, 'key')
    const bytes = typeof stored === 'string' ? toBytes(stored) : undefined
    if (bytes?.length !== 32) throw new Error(`The key "${name}" in the store cannot be used.`)
    return { bytes, key: await crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt']) }
  }

  const loaded = () => (key ??= load().catch((error: unknown) => ((key = undefined), Promise.reject(error as Error))))

  return {
    async seal(text) {
      const data = new TextEncoder().encode(text)
      const { bytes, key: secret } = await loaded()
      // Never the same for two texts: that would tell the key.
      const iv = alike
        ? new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array([...bytes, ...data]))).slice(0, ivLength)
        : crypto.getRandomValues(new Uint8Array(ivLength))
      const sealed = new Uint8Array(await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, secret, data))
      return toText(new Uint8Array([...iv, ...sealed]))
    },
    async open(sealed) {
      const bytes = sealed.length > longest ? undefined : toBytes(sealed)
      if (bytes === undefined || bytes.length <= ivLength) return undefined
      const [iv, data] = [bytes.slice(0, ivLength), bytes.slice(ivLength)]
      const { key: secret } = await loaded()
      const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, secret, data).catch(() => undefined)
      return opened && new TextDecoder().decode(opened)
    },
  }
}

/** Base64 for addresses. */
function toText(bytes: Uint8Array): string {
  let binary = ''
  // In pieces: a call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/u, '')
}

function toBytes(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[\w-]+$/u.test(text)) return undefined
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (each) => each.charCodeAt(0))
    // The last character may have bits that say nothing: only one form of a text opens.
    return toText(bytes) === text ? bytes : undefined
  } catch {
    return undefined
  }
}
