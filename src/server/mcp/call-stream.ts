/**
 * The response to one call: progress while its run goes on, then the result. It is a cursor into the run's log, so a client that reads slowly gets
 * fewer and longer pieces of progress. Over SSE, or as one JSON for a client that accepts nothing else.
 */
import type { BodySource } from '../../delivery/streamed-body.ts'
import { lightResponse } from '../../delivery/light-response.ts'
import { runIdHeader } from '../../delivery/delivery-response.ts'
import type { Entry } from '../../part/entry.ts'
import type { Log } from '../../part/log.ts'
import { textWire } from '../../wire/text/text.ts'
import { watchSilence } from '../http/sse-response.ts'
import type { Clock } from './clock.ts'
import { errorMessage, toRpcError, type MessageId } from './json-rpc.ts'
import { createProgress } from './progress.ts'
import { createRunWords } from './status.ts'

/** How messages are sent: all of them as events, or only the last one. */
export interface Framing {
  contentType: string
  /** Empty for a message that cannot be sent. */
  message(value: object, isLast: boolean): string
  keepAlive: string
}

export const asEvents: Framing = {
  contentType: 'text/event-stream',
  message: (value) => `event: message\ndata: ${JSON.stringify(value)}\n\n`,
  keepAlive: ': keep-alive\n\n',
}

/** Space before a JSON text means nothing. */
export const asJson: Framing = {
  contentType: 'application/json',
  message: (value, isLast) => (isLast ? JSON.stringify(value) : ''),
  keepAlive: ' ',
}

export interface CallStreamOptions {
  log: Log
  run: string
  /** Of the request. */
  id: MessageId
  framing: Framing
  /** Of the client, for progress. Absent: it gets comments only. */
  progressToken?: MessageId | undefined
  keepAliveMs: number
  clock: Clock
  /** The last message for a run that has ended. */
  onEnd(): Promise<object>
  /** For an answer that is complete while the run goes on: the last message, if it need not wait for the end. */
  onAnswered?(): Promise<object | undefined>
  /** The client has what the run did up to this entry. Default 0. */
  from?: number
  /** For a run that waits, with its `suspend`. The last message, if the response ends here; others are sent with `send`, also later. */
  onSuspend?(entry: Entry, stream: { send(message: object): void; signal: AbortSignal }): Promise<object | undefined>
  /** Ends the response after `ms` with this message, if the run goes on. */
  late?: { ms: number; message(): Promise<object> } | undefined
  /** Called once: `finished`, or the client has left before the last message. */
  onLeft(finished: boolean): void
  /** Calls back once when the caller may no longer read. */
  onExpired(end: (error: unknown) => void): () => void
  onError(error: unknown): void
}

export function callStream(options: CallStreamOptions): Response {
  const { framing, run } = options
  return lightResponse(
    {
      'content-type': framing.contentType,
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-millrace-run-id': runIdHeader(run),
    },
    createCallSource(options),
  )
}

export function createCallSource(options: CallStreamOptions): BodySource {
  const { log, run, id, framing, progressToken, keepAliveMs, clock, from = 0 } = options
  const leave = new AbortController()
  const progress = createProgress(clock)
  const words = createRunWords()
  // Not ended by a suspension: the run may go on while this client waits.
  const text = textWire.createEncoder({ resumedAt: Number.POSITIVE_INFINITY })
  /** Framed, and not yet taken. */
  let out = ''
  let isLast = false
  let isLeft = false
  let give: ((piece: string | undefined) => void) | undefined
  let ended: (() => void) | undefined

  const silence = watchSilence(keepAliveMs, () => source.sendKeepAlive?.(framing.keepAlive))
  const cancelLate = options.late && clock.after(options.late.ms, () => void finishWith(options.late!.message))
  const forget = options.onExpired((error) => finish(errorMessage(id, toRpcError(error))))

  function deliver(): void {
    if (give === undefined) return
    const params = progressToken === undefined || isLast ? undefined : progress.take()
    if (params !== undefined) {
      const message = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, ...params } }
      // The last message stands behind it.
      out += framing.message(message, false)
    }
    if (out === '' && !isLast) {
      if (progressToken !== undefined) progress.whenDue(deliver)
      return
    }
    const to = give
    give = undefined
    const piece = out
    out = ''
    silence.wrote()
    if (piece !== '') return to(piece)
    close(true)
    to(undefined)
  }

  function send(message: object): void {
    if (isLast || isLeft) return
    out += framing.message(message, false)
    deliver()
  }

  function finish(message: object): void {
    if (isLast || isLeft) return
    isLast = true
    out += framing.message(message, true)
    stop()
    deliver()
  }

  async function finishWith(make: () => Promise<object>): Promise<void> {
    if (isLast || isLeft) return
    try {
      finish(await make())
    } catch (error) {
      fail(error)
    }
  }

  function fail(error: unknown): void {
    const known = toRpcError(error)
    if (known.status >= 500) options.onError(error)
    finish(errorMessage(id, known))
  }

  function stop(): void {
    cancelLate?.()
    progress.close()
    forget()
    leave.abort()
  }

  function close(finished: boolean): void {
    if (isLeft) return
    isLeft = true
    silence.stop()
    stop()
    options.onLeft(finished)
    ended?.()
  }

  async function follow(): Promise<void> {
    try {
      for await (const batch of log.read(run, { signal: leave.signal })) {
        for (const entry of batch) {
          words.apply(entry)
          if (progressToken === undefined) continue
          if (entry.seq <= from) text.skip(entry)
          else progress.add(text.state === 'open' ? text.encode(entry) : '', words.words)
        }
        const suspended = batch.findLast(({ type, seq }) => type === 'suspend' && seq > from)
        const last = suspended && (await options.onSuspend?.(suspended, { send, signal: leave.signal }))
        if (last !== undefined) return finish(last)
        const answered = batch.some(({ type }) => type === 'answer-end') ? await options.onAnswered?.() : undefined
        if (answered !== undefined) return finish(answered)
        deliver()
      }
      if (!leave.signal.aborted) await finishWith(options.onEnd)
    } catch (error) {
      if (!leave.signal.aborted) fail(error)
    }
  }

  const source: BodySource = {
    next(to) {
      give = to
      deliver()
    },
    // The last message has been taken: nothing is missing.
    cancel: () => close(isLast && out === ''),
    onEnd(then) {
      if (isLeft) then()
      else ended = then
    },
  }
  void follow()
  return source
}
