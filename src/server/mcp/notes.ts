/**
 * What a client has done with the questions of a task or a legacy call, other than answer them: cancelled one, or sent content that does not fit. It stands beside the
 * run, not in it, because it means nothing to other clients. All instances read it.
 */
import type { Log } from '../../part/log.ts'

export interface Notes {
  /** Requests that are not asked again: the client has cancelled them, or shows our page to a person. */
  left: ReadonlySet<string>
  /** How often content for a request did not fit. */
  misfits: ReadonlyMap<string, number>
}

const inboxOf = (run: string) => `mcp:${run}`

export async function readNotes(log: Log, run: string): Promise<Notes> {
  const left = new Set<string>()
  const misfits = new Map<string, number>()
  for await (const { key, message } of log.inbox(inboxOf(run))) {
    const { requestId } = message as { requestId: string }
    if (key.startsWith('left:')) left.add(requestId)
    else misfits.set(requestId, (misfits.get(requestId) ?? 0) + 1)
  }
  return { left, misfits }
}

export async function noteLeft(log: Log, run: string, requestId: string): Promise<void> {
  await log.post(inboxOf(run), `left:${requestId}`, { requestId })
}

/** `time`: how often content had not fitted before. The same again changes nothing. */
export async function noteMisfit(log: Log, run: string, requestId: string, time: number): Promise<void> {
  await log.post(inboxOf(run), `misfit:${time}:${requestId}`, { requestId })
}

/** Calls back with each note of content that did not fit, until the signal aborts. */
export async function onMisfit(log: Log, run: string, signal: AbortSignal, then: () => Promise<void>): Promise<void> {
  for await (const { key } of log.inbox(inboxOf(run), { signal })) if (key.startsWith('misfit:')) await then()
}

/** Calls back with each new note, until the signal aborts or the store closes. */
export async function followNotes(log: Log, run: string, signal: AbortSignal, then: () => void): Promise<void> {
  for await (const _ of log.inbox(inboxOf(run), { signal })) then()
}
