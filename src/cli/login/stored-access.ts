/** What a command sends to a server: `MILLRACE_API_KEY`, else what `millrace login` has kept for this server. */
import { checkKey } from '../../part/check-key.ts'
import { MillraceError } from '../../part/error.ts'
import type { CommandContext } from '../context.ts'
import { readCredential, writeCredential } from './credentials.ts'

export interface StoredAccess {
  /** After `Bearer`. */
  key: string
  /** By `millrace login`. */
  isSignIn?: boolean
}

/** A token is renewed this long before its end: the request takes a while. */
const marginMs = 30_000

/** Rejects with `unauthorized` if the sign-in has ended. */
export async function storedAccess(
  context: CommandContext,
  url: string,
  now: () => number = Date.now,
): Promise<StoredAccess | undefined> {
  const credential = readCredential(context, url)
  if (credential === undefined) return undefined
  if (credential.type === 'key') {
    checkKey(credential.key, `The key that millrace login has kept for ${url}`)
    return { key: credential.key, isSignIn: true }
  }
  if (credential.expiresAt - marginMs > now()) return { key: credential.token, isSignIn: true }
  // It loads the library, which most commands do not need.
  const { refreshed } = await import('./device-flow.ts')
  const next = await refreshed(credential, now)
  if (next === undefined) {
    throw new MillraceError('unauthorized', `Your sign-in to ${url} has ended. Run: millrace login --server ${url}`)
  }
  writeCredential(context, url, next)
  return { key: next.token, isSignIn: true }
}
