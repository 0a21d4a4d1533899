/** How to sign in at this server, and how to leave. */
import { request } from '../../src/client/request.ts'
import { fetchApi } from './client.ts'
import { readKey } from './key.ts'
import { nameCaller } from './live.ts'

/** Of `GET /auth/ways`. */
export interface SignInWays {
  key: boolean
  /** With an OpenID provider. */
  login: boolean
}

/** Also of a server that does not say. */
let ways: SignInWays = { key: true, login: false }
let asking: Promise<void> | undefined

export function readWays(): SignInWays {
  return ways
}

/** Asks the server once. Never rejects. */
export function loadWays(): Promise<void> {
  asking ??= request({ url: '', headers: {}, fetch: globalThis.fetch.bind(globalThis) }, '/auth/ways').then(
    async (response) => {
      ways = (await response.json()) as SignInWays
    },
    () => {
      asking = undefined
    },
  )
  return asking
}

/** Where the browser goes to sign in, and comes back from to where it is now. */
export function loginPath(): string {
  return `/auth/login?return=${encodeURIComponent(location.pathname + location.search)}`
}

/** Forgets what this tab has: the key, unsent words, unsaved texts. A session ends for the whole browser. Rejects if it cannot be ended. */
export async function signOut(): Promise<void> {
  if (readKey() === undefined) {
    await fetchApi('/auth/logout', { method: 'POST' })
    // Other tabs may have the same stream.
    nameCaller('signed out')
  }
  try {
    sessionStorage.clear()
  } catch {
    // There was nothing in it.
  }
  location.reload()
}
