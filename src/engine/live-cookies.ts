/**
 * Cookies that a step sets for its client. They are credentials, so they are not logged: they are kept in memory for the
 * response to the request that started the run.
 */

/** Maximum number of runs whose cookies are kept; the oldest are dropped. */
const most = 1000
const waiting = new Map<string, readonly string[]>()

export function keepCookies(runId: string, cookies: readonly string[]): void {
  if (cookies.length === 0) return
  waiting.set(runId, cookies)
  if (waiting.size > most) waiting.delete(waiting.keys().next().value!)
}

/** Returns a run's cookies and removes them. */
export function takeCookies(runId: string): readonly string[] {
  const cookies = waiting.get(runId) ?? []
  waiting.delete(runId)
  return cookies
}
