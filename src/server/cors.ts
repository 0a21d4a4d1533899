/** Pages of other origins, by name: the browser's preflight is answered, and their scripts may read what comes back. */

/** What a page may read beside the body. */
const exposed = 'x-millrace-run-id, x-vercel-ai-ui-message-stream, retry-after, x-should-retry'

export interface Cors {
  /** For a preflight of an allowed page: it asks for a page that has not sent its key yet, so nothing else looks at it. */
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
      // Also where the page is none of them: a cache must not give one page's answer to another.
      if (origins.size > 0) response.headers.append('vary', 'origin')
      const origin = originOf(request)
      if (origin === undefined) return response
      response.headers.set('access-control-allow-origin', origin)
      response.headers.set('access-control-expose-headers', exposed)
      return response
    },
  }
}
