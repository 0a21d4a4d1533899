/** Attaches a client to a run and opens its cursor: presence, what it replays, and the encoder. */
import { keepAliveOf } from './keep-alive.ts'
import type { Log } from '../part/log.ts'
import { messagesOf, type Message } from '../part/message.ts'
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import type { Turned } from '../runtime/continue.ts'
import { conversation, historyLimit } from '../runtime/conversation.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Piece, Wire, WireContext } from '../wire/wire.ts'
import type { AnswerContext } from './answer-context.ts'
import { createAnswerSource, type AnswerSource } from './answer-source.ts'
import { createRunReader } from './run-reader.ts'
import { readStanding, type Standing } from './standing.ts'
import { nextPiece } from './streamed-body.ts'

export interface OpenOptions<Options extends object, Out extends Piece> {
  runId: string
  wire: Wire<Options, Out>
  /** Options of the protocol. */
  options?: Partial<Options>
  /** How the client came to the run. Who joins it reads it from its start, without what is superseded. Default `started`. */
  how?: Turned['how']
  /** First `seq` of this client's part of the answer: it gets no entry before it. Default 0. */
  from?: number
  /** What the log holds, if the caller has read it already. */
  standing?: Standing
  /** What happens to the run when this client disconnects. Default: nothing. */
  policy?: DisconnectPolicy
}

/** An answer that nobody has read yet: read its source, or drop it. */
export type OpenAnswer<Out extends Piece> = AnswerSource<Out>

export async function openAnswer<Options extends object, Out extends Piece>(
  context: AnswerContext,
  { runId, wire, options, how = 'started', from = 0, policy, ...rest }: OpenOptions<Options, Out>,
): Promise<OpenAnswer<Out>> {
  const { runtime } = context
  const { log } = runtime.store
  const release = policy === undefined ? undefined : runtime.attach(runId, policy)
  try {
    const standing = rest.standing ?? (how === 'joined' ? await readStanding(log, runId) : undefined)
    const at: WireContext = { resumedAt: standing?.resumedAt ?? from }
    if (how === 'joined' && from > 0) at.joinedAt = from
    if (wire.showsHistory === true) at.history = await readHistory(runtime, runId)
    const encoder = wire.createEncoder(at, options)
    const reader = createRunReader(log, runId, wire.isStateless === true ? Math.max(0, from - 1) : 0, from)
    const { lastBatch } = wire
    const keepAlive = keepAliveOf(wire)
    const filter = standing?.filter
    const shared = filter === undefined && lastBatch ? { lastBatch, options: JSON.stringify(options ?? {}) } : undefined
    return createAnswerSource(context, { runId, encoder, keepAlive, reader, from, filter, shared, release })
  } catch (error) {
    release?.()
    throw error
  }
}

/** The conversation before a run whose thread's history is the server's. Otherwise its `run-start` has it. */
export async function readHistory({ store }: Runtime, runId: string): Promise<Message[]> {
  const [start] = await firstEntries(store.log, runId)
  if (start?.type !== 'run-start' || start.previousRunId === undefined) return []
  const asked = { following: messagesOf(start.input), limit: historyLimit }
  return (await conversation(store, start.threadId, start.previousRunId, asked)).messages
}

async function firstEntries(log: Log, runId: string) {
  for await (const batch of log.read(runId, { limit: 1 })) return batch
  return []
}

/** Reads an answer to its end. Undefined if the client disconnected before. */
export async function collectAnswer<Out extends Piece>(
  { source }: OpenAnswer<Out>,
  signal: AbortSignal,
): Promise<Out[] | undefined> {
  const pieces: Out[] = []
  const cancel = () => source.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    if (signal.aborted) cancel()
    for (;;) {
      const piece = await nextPiece(source)
      if (signal.aborted) return undefined
      if (piece === undefined) return pieces
      pieces.push(piece)
    }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
