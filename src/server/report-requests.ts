import { compact } from '../part/compact.ts'
import type { Handler } from './handler.ts'
import type { Reporter } from './report.ts'

/** Reports requests that were refused or failed before a run started. The outcome of a run is reported by the run. */
export function reportRequests(handler: Handler, report: Reporter): Handler {
  return async (request) => {
    const response = await handler(request)
    if (response.status >= 400 && !response.headers.has('x-millrace-run-id')) {
      // Without the query, which may contain private data.
      const path = new URL(request.url).pathname
      // Why the health is bad was reported when it became so.
      if (path === '/health') return response
      const { status, statusText } = response
      const { method } = request
      void errorIn(response).then((error) => {
        const { code, message = statusText } = error
        const level = status >= 500 ? ('error' as const) : ('warn' as const)
        report(compact({ level, event: 'request' as const, method, path, status, code, message }))
      })
    }
    return response
  }
}

async function errorIn(response: Response): Promise<{ code?: string; message?: string }> {
  try {
    const { error } = (await response.clone().json()) as { error?: { code?: unknown; message?: unknown } }
    const { code, message } = error ?? {}
    return {
      ...(typeof code === 'string' ? { code } : undefined),
      ...(typeof message === 'string' ? { message } : undefined),
    }
  } catch {
    return {}
  }
}
