/**
 * What only a provider can read (a signature, redacted reasoning), as AG-UI's `encryptedValue`: clients keep it and send it back.
 * It is our provider metadata as JSON.
 */
import { parseJson } from '../../part/json.ts'
import type { ProviderOptions } from '../../part/message.ts'

export function toEncryptedValue(options: ProviderOptions): string {
  return JSON.stringify(options)
}

/** Empty for a value that is not ours: another server's model cannot be told it. */
export function toProviderOptions(value: unknown): { providerOptions?: ProviderOptions } {
  if (typeof value !== 'string' || !value.startsWith('{')) return {}
  try {
    return { providerOptions: parseJson(value) as ProviderOptions }
  } catch {
    return {}
  }
}
