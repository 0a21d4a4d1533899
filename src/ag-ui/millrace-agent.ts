/**
 * The AG-UI client for one agent of a Millrace server. It adds two things that AG-UI leaves to the server: joining a thread again
 * after a reload, and a stop that the server is told of.
 */
import { HttpAgent, runHttpRequest, transformHttpEventStream, type RunAgentInput } from '@ag-ui/client'

/** `HttpAgent` with `connectAgent`, and an `abortRun` that stops the run on the server. */
export class MillraceAgent extends HttpAgent {
  /** The run that answers, as the server calls it; null before the server has said it. */
  millraceRunId: string | null = null
  // Not `#`: `clone()` makes agents without a constructor.
  /** A run was to be stopped before its id was known. */
  private stopsNext = false
  private isAsking = false

  override run(input: RunAgentInput): ReturnType<HttpAgent['run']> {
    return this.read(this.url, this.requestInit(input))
  }

  /** The messages of the thread, then what is still being answered. `connectAgent` calls it. */
  protected override connect(input: RunAgentInput): ReturnType<HttpAgent['run']> {
    if (this.abortController.signal.aborted) this.abortController = new AbortController()
    const { headers } = this
    const { signal } = this.abortController
    const { threadId, protocolVersion } = input as RunAgentInput & { protocolVersion?: string }
    const query = new URLSearchParams({ threadId, ...(protocolVersion !== undefined && { protocolVersion }) })
    return this.read(`${this.url}/connect?${query.toString()}`, { headers, signal }, true)
  }

  /** The server ends the run, with an orderly last event. */
  override abortRun(): void {
    if (this.millraceRunId !== null) return void this.stop(this.millraceRunId)
    if (this.isAsking) this.stopsNext = true
    else super.abortRun()
  }

  private stop(runId: string): Promise<unknown> {
    const server = this.url.replace(/\/ag-ui\/[^/]*\/?$/u, '')
    const url = `${server}/api/runs/${encodeURIComponent(runId)}/stop`
    // Whoever cannot be told to stop is left.
    return this.fetch(url, { method: 'POST', headers: this.headers }).catch(() => super.abortRun())
  }

  private read(url: string, init: RequestInit, mayBeNew = false): ReturnType<HttpAgent['run']> {
    this.millraceRunId = null
    this.stopsNext = false
    this.isAsking = true
    const events = runHttpRequest(async () => {
      try {
        const response = await this.fetch(url, init)
        this.millraceRunId = response.headers.get('x-millrace-run-id')
        if (this.stopsNext && this.millraceRunId !== null) void this.stop(this.millraceRunId)
        // A thread of which the server does not know yet has no messages.
        return mayBeNew && response.status === 404 ? new Response('') : response
      } finally {
        this.isAsking = false
      }
    })
    return transformHttpEventStream(events)
  }
}
