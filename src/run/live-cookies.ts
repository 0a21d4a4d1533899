/**
 * Cookies that a step set for its client. They are credentials, so the log does not hold them: they wait here for the
 * response to the request that started the run, and are gone with the process.
 */

/** Runs whose cookies nobody has taken. */
const most = 1000
const waiting = new Map<string, readonly string[]>()

export function keepCookies(runId: string, cookies: readonly string[]): void {
  if (cookies.length === 0) return
  waiting.set(runId, cookies)
  if (waiting.size > most) waiting.delete(waiting.keys().next().value!)
}

/** Gives them once. */
export function takeCookies(runId: string): readonly string[] {
  const cookies = waiting.get(runId) ?? []
  waiting.delete(runId)
  return cookies
}
