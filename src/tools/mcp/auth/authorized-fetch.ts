/** Sends the token of an MCP server with each request to it, and takes it out of what the server answers. */
import { createTextCleaner } from '../../../fold/redact.ts'
import { discardBody } from '../../../models/limits/within-origin.ts'
import type { TokenSource } from './token-source.ts'
import { unauthorized } from './unauthorized.ts'

export type Fetch = (target: string | URL, init?: RequestInit) => Promise<Response>

/**
 * `send` must not follow redirects to other origins. A request that is refused with 401 is sent once more, with another token. Rejects with
 * `mcp-unauthorized`.
 */
export function authorizedFetch(send: Fetch, source: TokenSource, who: string): Fetch {
  async function sendWith(token: string, target: string | URL, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${token}`)
    return send(target, { ...init, headers })
  }

  return async (target, init) => {
    const token = await source.token()
    let response = await sendWith(token, target, init)
    if (response.status === 401) {
      discardBody(response)
      response = await sendWith(await source.renewed(token), target, init)
    }
    const { status, headers } = response
    if (status === 401) {
      discardBody(response)
      throw unauthorized(who, 'it does not accept the token of its authorization server')
    }
    if (status === 403 && /\binsufficient_scope\b/u.test(headers.get('www-authenticate') ?? '')) {
      discardBody(response)
      throw unauthorized(who, 'its token has too few rights for this; see auth.scope in the config')
    }
    return withoutTokens(response, source)
  }
}

/** A server may repeat what it was sent, in a result or an error. */
function withoutTokens(response: Response, source: TokenSource): Response {
  const { body, status, statusText, headers } = response
  if (body === null) return response
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  let known = source.given
  let cleaner = createTextCleaner(known)

  function clean(text: string): string {
    if (known === source.given) return cleaner.push(text)
    // There is a newer token, which may be in the rest of a long stream.
    const before = cleaner.end()
    known = source.given
    cleaner = createTextCleaner(known)
    return before + cleaner.push(text)
  }

  const cleaning = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      const text = clean(decoder.decode(bytes, { stream: true }))
      if (text !== '') controller.enqueue(encoder.encode(text))
    },
    flush(controller) {
      const text = clean(decoder.decode()) + cleaner.end()
      if (text !== '') controller.enqueue(encoder.encode(text))
    },
  })
  return new Response(body.pipeThrough(cleaning), { status, statusText, headers })
}
