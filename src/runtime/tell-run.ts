/** Messages to a run that is active: sent, listed and taken back in any process. Its owner copies them from the inbox into the log. */
import { waitingMessages } from '../engine/steering.ts'
import { readStored } from '../engine/stored-pipeline.ts'
import { recordable } from '../part/json.ts'
import { MillraceError } from '../part/error.ts'
import { hasEnded, type RunRow, type Store } from '../part/log.ts'
import type { UserMessage } from '../part/message.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { Actor } from '../part/principal.ts'
import {
  claimKey,
  messageKey,
  mostMessageBytes,
  mostWaiting,
  type MessageClaim,
  type MessageMode,
  type PostedMessage,
  type WaitingMessage,
} from '../part/sent-message.ts'
import { plainThread } from '../part/principal.ts'
import type { EntryOf } from '../part/entry.ts'
import { stepsInside } from '../pipeline/calls.ts'
import type { Step } from '../pipeline/pipeline.ts'
import { awaitEntry } from './await-entry.ts'
import { startNow } from './own-text.ts'
import { unknownRun } from './runtime-errors.ts'

/** A message for a run. */
export interface TellOptions {
  content: UserMessage['content']
  /** The same id again is the same message. Default: a new id. */
  id?: string
  /** Default `steer`. */
  mode?: MessageMode
  protocol?: string
  /** Who sends it. */
  by?: Actor
  labels?: Record<string, string>
  /** The request that brings it reads the answer from there on. */
  turn?: true
}

/** What was stored. `mode`: `queue` if the agent has no step that can take it. `duplicate`: the message was known. */
export interface Told {
  id: string
  mode: MessageMode
  duplicate: boolean
}

export interface TellContext {
  store: Store
  shutdown: AbortSignal
  now(): number
  /** Also removes the secrets of this run. */
  redactOf(run: string): <T>(value: T) => T
  /** Starts the runs of messages that no owner has seen. */
  settle(run: string): Promise<void>
}

/** Resolves when the message is stored. Rejects with `unknown-run`, `run-ended`, `foreign-run`, `too-large` or `too-many-messages`. */
export async function tellRun(context: TellContext, run: string, given: TellOptions): Promise<Told> {
  const { store, now, redactOf } = context
  const { content, id = `msg_${crypto.randomUUID().replaceAll('-', '')}`, protocol = 'library' } = given
  checkSize(content)
  const row = await store.runs.get(run)
  if (row === undefined) throw unknownRun(run)
  const known = await postedMessage(store, run, id)
  if (known !== undefined) return { id, mode: known.mode, duplicate: true }
  if (hasEnded(row.status)) throw runEnded(row)
  if ((await listWaiting(store, run)).length >= mostWaiting) throw tooMany(run)
  const start = await startNow(store, run)
  if (start === undefined && row.foreign !== undefined) throw notAcceptedYet(run)
  const mode = given.mode === 'queue' || start === undefined || !hears(start) ? 'queue' : 'steer'
  const message = redactOf(run)(
    recordable({
      mode,
      content,
      protocol,
      sentAt: now(),
      ...omitUndefined({ by: given.by, labels: given.labels, turn: given.turn }),
    } satisfies PostedMessage),
  )
  const { first, message: winner } = await store.log.post(run, messageKey(id), message)
  void followUp(context, run, row.lastSeq).catch(() => undefined)
  return { id, mode: (winner as PostedMessage).mode, duplicate: !first }
}

/** If the run ends before its owner has seen the message, this process starts the next run. */
async function followUp({ store, shutdown, settle }: TellContext, run: string, after: number): Promise<void> {
  const row = await store.runs.get(run)
  if (row !== undefined && !hasEnded(row.status)) {
    const end = await awaitEntry(store.log, run, ({ type }) => type === 'run-end', { after, signal: shutdown })
    if (end === undefined) return
  }
  await settle(run)
}

/** The messages that wait for a run, in the order in which they came. Empty once it has ended. */
export async function listWaiting(store: Store, run: string): Promise<WaitingMessage[]> {
  const waiting = await waitingMessages(store.log, run, () => false)
  if (waiting.length === 0) return []
  const row = await store.runs.get(run)
  if (row === undefined || hasEnded(row.status)) return []
  const recorded = await recordedMessages(store, run)
  return waiting.flatMap(({ id, posted: { mode, content, protocol, by, sentAt } }) =>
    recorded.has(id) ? [] : [{ id, mode, content, protocol, sentAt, ...omitUndefined({ by }) }],
  )
}

/** Takes a message back. Rejects with `unknown-message`, or with `message-delivered` if the run was faster. */
export async function takeBack(store: Store, run: string, id: string): Promise<void> {
  const row = await store.runs.get(run)
  if (row === undefined) throw unknownRun(run)
  if ((await postedMessage(store, run, id)) === undefined) {
    throw new MillraceError('unknown-message', `Run ${run} has no message ${id}.`, { status: 404 })
  }
  const delivered = new MillraceError('message-delivered', `Message ${id} can no longer be taken back.`, {
    status: 409,
  })
  if (hasEnded(row.status)) throw delivered
  const { message } = await store.log.post(run, claimKey(id), { to: 'sender' } satisfies MessageClaim)
  // A stopped run has dropped it, and claims nothing for that.
  if ((message as MessageClaim).to !== 'sender') throw delivered
}

/** The messages that the log of a run has, by id. */
export async function recordedMessages(
  { log }: Pick<Store, 'log'>,
  run: string,
): Promise<Map<string, EntryOf<'message'>>> {
  const found = new Map<string, EntryOf<'message'>>()
  for await (const batch of log.read(run, { types: ['message'] }))
    for (const entry of batch) if (entry.type === 'message') found.set(entry.id, entry)
  return found
}

async function postedMessage({ log }: Store, run: string, id: string): Promise<PostedMessage | undefined> {
  const wanted = messageKey(id)
  for await (const { key, message } of log.inbox(run)) if (key === wanted) return message as PostedMessage
  return undefined
}

/** Whether a step takes messages while it answers: an `llm` step that streams. One in a loop cannot stream, and steps of called agents take none. */
function takesMessages(step: Step): boolean {
  return step.type === 'llm' ? step.config.stream : stepsInside(step).some(takesMessages)
}

/** Whether its pipeline can take messages. */
function hears({ pipeline: text }: EntryOf<'run-start'>): boolean {
  const pipeline = readStored(text)
  return pipeline !== undefined && pipeline.workflow.some(takesMessages)
}

function checkSize(content: UserMessage['content']): void {
  const bytes = new TextEncoder().encode(JSON.stringify(content)).byteLength
  if (bytes <= mostMessageBytes) return
  const message = `content must have at most ${mostMessageBytes / 1024} KB, and has ${Math.ceil(bytes / 1024)} KB.`
  throw new MillraceError('too-large', message, { status: 413 })
}

/** The client can go on in the thread. */
export function runEnded({ id, threadId }: Pick<RunRow, 'id' | 'threadId'>): MillraceError {
  const message = `Run ${id} has ended. Send the message to its thread: ${plainThread(threadId)}.`
  return new MillraceError('run-ended', message, { status: 409 })
}

function notAcceptedYet(run: string): MillraceError {
  const message = `Run ${run} was recorded elsewhere, and nobody here has let it go on. Answer what it asks, or fork it; then send the message.`
  return new MillraceError('foreign-run', message, { status: 403 })
}

function tooMany(run: string): MillraceError {
  const message = `${mostWaiting} messages wait for run ${run}, the maximum. Take one back, or wait until it takes them.`
  return new MillraceError('too-many-messages', message, { status: 429, retryAfter: 5 })
}
