/** The events and messages of AG-UI 1.0 as plain JSON: the types of `@ag-ui/core`, with their discriminators as texts. */
import type { Event, Message } from '@ag-ui/core'

type Plain<E> = E extends { type: infer Type extends string } ? Omit<E, 'type'> & { type: `${Type}` } : never

/** One event of AG-UI. Undefined fields are not sent. */
export type AgUiEvent = Plain<Event>
/** The event of one type: `AgUiEventOf<'RUN_FINISHED'>`. */
export type AgUiEventOf<Type extends AgUiEvent['type']> = Extract<AgUiEvent, { type: Type }>
/** One message of a conversation, as AG-UI clients keep it. */
export type AgUiMessage = Message

/** Options of an AG-UI stream. */
export interface AgUiOptions {
  /**
   * The client is older than 1.0: its request had no `protocolVersion`. It gets no `pendingToolCallIds`, results as plain text, and RUN_ERROR with
   * the code `cancelled` for a stopped run.
   */
  old: boolean
  /**
   * The client replies while the stream is open (Socket.IO): `suspend` does not end it while only client tools are pending, and their results are
   * sent.
   */
  live: boolean
  /** The `seq` from which the stream is `live`: earlier parts of the run have ended for the client. Default 0. */
  liveFrom: number
  /** The client did not make the request that started the run (`connect`), so it also gets the replies of the one that did. */
  joins: boolean
  /**
   * The messages of MESSAGES_SNAPSHOT. Default: those of the input, after the history in the context; none where a run is continued, because the
   * client has them.
   */
  messages: readonly AgUiMessage[]
  /** Warnings for the start, sent as CUSTOM. */
  warnings: readonly string[]
  /** Send prompts, too. */
  traces: boolean
}

/** Sends events with the time of the entry that they come from. */
export interface AgUiOut {
  /** The time of the current entry; 0 before the first. */
  timestamp: number
  send(event: AgUiEvent): void
}
