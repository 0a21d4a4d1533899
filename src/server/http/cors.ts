/** CORS for the allowed origins: answers preflights and lets their scripts read responses. */

/** Headers that a page may read. */
const exposed =
  'x-millrace-run-id, x-vercel-ai-ui-message-stream, retry-after, x-should-retry, mcp-session-id, www-authenticate'

export interface Cors {
  /** The response to a preflight from an allowed origin. Call it before authorization: preflights carry no key. */
  preflight(request: Request): Response | undefined
  allow(request: Request, response: Response): Response
}

export function createCors(origins: ReadonlySet<string>): Cors {
  const originOf = ({ headers }: Request) => {
    const origin = headers.get('origin')
    return origin !== null && origins.has(origin) ? origin : undefined
  }
  return {
    preflight(request) {
      const { method, headers } = request
      const origin = originOf(request)
      if (method !== 'OPTIONS' || origin === undefined || !headers.has('access-control-request-method'))
        return undefined
      const answer = new Headers({
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'GET, POST',
        'access-control-max-age': '600',
        vary: 'origin, access-control-request-headers',
      })
      const asked = headers.get('access-control-request-headers')
      if (asked !== null) answer.set('access-control-allow-headers', asked)
      return new Response(null, { status: 204, headers: answer })
    },
    allow(request, response) {
      // Also for other origins: a cache must not serve one origin's response to another.
      if (origins.size > 0) response.headers.append('vary', 'origin')
      const origin = originOf(request)
      if (origin === undefined) return response
      response.headers.set('access-control-allow-origin', origin)
      response.headers.set('access-control-expose-headers', exposed)
      return response
    },
  }
}
