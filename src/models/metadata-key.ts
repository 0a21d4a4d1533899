/** The key of a chat endpoint's own data in the parts of its answers. */
import { ownValue } from '../part/own-value.ts'
import { camel } from './decode/fields.ts'

/** The provider's name, or in camel case if the request's provider options have that. `provider`: `my-server.chat`. */
export function metadataKeyOf(provider: string, providerOptions: Record<string, unknown> | undefined): string {
  const name = provider.split('.')[0]!.trim()
  const other = camel(name)
  return other !== name && (ownValue(providerOptions, other) ?? undefined) !== undefined ? other : name
}
