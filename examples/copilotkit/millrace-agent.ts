/**
 * The AG-UI client for one agent of a Millrace server. It adds two things that AG-UI leaves to the server: joining a thread again
 * after a reload, and a stop that the server is told of.
 */
import { HttpAgent, runHttpRequest, transformHttpEventStream, type RunAgentInput } from '@ag-ui/client'

export class MillraceAgent extends HttpAgent {
  /** The run that is answering, as the server calls it. */
  millraceRunId: string | null = null

  override run(input: RunAgentInput) {
    return this.read(this.url, this.requestInit(input))
  }

  /** The messages of the thread, then what is still being answered. CopilotKit calls this for `connectAgent`. */
  protected override connect({ threadId }: RunAgentInput) {
    if (this.abortController.signal.aborted) this.abortController = new AbortController()
    const { headers } = this
    const { signal } = this.abortController
    return this.read(`${this.url}/connect?threadId=${encodeURIComponent(threadId)}`, { headers, signal }, true)
  }

  /** The server ends the run with an orderly last event. */
  override abortRun(): void {
    if (this.millraceRunId === null) return super.abortRun()
    const stop = new URL(`/api/runs/${this.millraceRunId}/stop`, this.url)
    void this.fetch(stop.href, { method: 'POST', headers: this.headers }).catch(() => super.abortRun())
  }

  private read(url: string, init: RequestInit, mayBeNew = false) {
    this.millraceRunId = null
    const events = runHttpRequest(async () => {
      const response = await this.fetch(url, init)
      this.millraceRunId = response.headers.get('x-millrace-run-id')
      // A thread of which the server does not know yet has no messages.
      return mayBeNew && response.status === 404 ? new Response('') : response
    })
    return transformHttpEventStream(events)
  }
}
