/**
 * The AG-UI client for one agent of a Millrace server. It adds features that AG-UI leaves open: joining a thread again after a reload, a stop that the
 * server is told of, and an error when an answer is cut off.
 */
import { EventType, HttpAgent, runHttpRequest, transformHttpEventStream, type RunAgentInput } from '@ag-ui/client'

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

  /** The messages of the thread, then the answer in progress. `connectAgent` calls it. */
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
    // A server that cannot be reached is left.
    return this.fetch(url, { method: 'POST', headers: this.headers }).catch(() => super.abortRun())
  }

  private read(url: string, init: RequestInit, mayBeNew = false): ReturnType<HttpAgent['run']> {
    this.millraceRunId = null
    this.stopsNext = false
    this.isAsking = true
    const body: Body = { broken: undefined }
    const events = runHttpRequest(async () => {
      try {
        const response = await this.fetch(url, init)
        this.millraceRunId = response.headers.get('x-millrace-run-id')
        if (this.stopsNext && this.millraceRunId !== null) void this.stop(this.millraceRunId)
        // A thread of which the server does not know yet has no messages.
        return mayBeNew && response.status === 404 ? new Response('') : shielded(response, body)
      } finally {
        this.isAsking = false
      }
    })
    return untilItsEnd(transformHttpEventStream(events), body, mayBeNew)
  }
}

interface Body {
  /** Why it could not be read to its end. */
  broken: unknown
}

/**
 * A body that breaks ends here, and its state so far decides the outcome. AG-UI's client cancels the reader of a body that has
 * failed, and throws its error once more, where nobody can catch it: a Node process would end.
 */
function shielded(response: Response, state: Body): Response {
  if (!response.ok || response.body === null) return response
  const reader = response.body.getReader()
  const { status, statusText, headers } = response
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      } catch (error) {
        state.broken = error
        controller.close()
      }
    },
    cancel: (reason) => reader.cancel(reason).catch(() => undefined),
  })
  return new Response(body, { status, statusText, headers })
}

type Events = ReturnType<HttpAgent['run']>

interface EventObserver {
  next(event: unknown): void
  error(error: unknown): void
  complete(): void
}

/** AG-UI's client takes a stream without its last event for an answer. */
function untilItsEnd(events: Events, body: Body, mayBeEmpty: boolean): Events {
  // RxJS is the client's own, and a page should have it once.
  const Observable = events.constructor as new (subscribe: (observer: EventObserver) => unknown) => Events
  return new Observable((observer) => {
    let isWhole = mayBeEmpty
    return events.subscribe({
      next(event) {
        isWhole = event.type === EventType.RUN_FINISHED || event.type === EventType.RUN_ERROR
        observer.next(event)
      },
      error: (error: unknown) => observer.error(error),
      complete() {
        const { broken } = body
        if (isWhole) observer.complete()
        // The client itself has left.
        else if ((broken as Error | undefined)?.name === 'AbortError') observer.error(broken)
        else observer.error(Object.assign(new Error(cutOff, { cause: broken }), { code: 'connection-lost' }))
      },
    })
  })
}

const cutOff = 'The answer was cut off: the connection ended before the run did. connectAgent reads the rest.'
