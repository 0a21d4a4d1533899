/** Counts requests by the pattern of their route, for Prometheus. */
import type { App } from './router.ts'
import { getPath } from 'hono/utils/url'
import { headerOf } from '../../delivery/light-response.ts'
import { createCounter, createHistogram } from '../../record/metrics/families.ts'

export function createRequestCount(app: App) {
  const requests = createCounter('millrace_http_requests_total', 'HTTP requests, by route, method and status.')
  const duration = createHistogram('millrace_http_request_duration_seconds', 'Until a response that is no stream.')

  /** Never the path itself: it has ids. */
  function patternOf(method: string, path: string): string | undefined {
    const [found] = app.router.match(method === 'HEAD' ? 'GET' : method, path)
    return found.at(-1)?.[0][1].path
  }

  return {
    count(request: Request, response: Response, began: number): void {
      const { method } = request
      const { status } = response
      const route = patternOf(method, getPath(request))
      requests.add(
        route === undefined
          ? { route: 'other', method: 'other', status: String(status) }
          : { route, method, status: String(status) },
      )
      if (/^text\/event-stream|ndjson/u.test(headerOf(response, 'content-type') ?? '')) return
      duration.add({ route: route ?? 'other' }, (performance.now() - began) / 1000)
    },
    text: () => requests.text() + duration.text(),
  }
}
