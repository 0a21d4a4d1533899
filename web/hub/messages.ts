/** What tabs and the hub say to each other. Everything is cloned on its way. */
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'

/** The state of the connection to the server. */
export type HubConnection =
  | { state: 'connecting' | 'open' | 'unauthorized' }
  | { state: 'offline'; /** Epoch ms. */ retryAt: number }

/** Why a run is not followed any more: see `docs/http.md`. */
export type GoneReason = 'unknown' | 'deleted' | 'lost' | 'compacted'

export type ToHub =
  /** Comes first, and again when the tab was forgotten: it wants nothing yet. Tabs with different keys have different connections. */
  | { kind: 'hello'; key: string | undefined }
  /** The tab has another key, or tries its key again. */
  | { kind: 'key'; key: string | undefined }
  /** Who is signed in, by the server's answer to this tab. When it is somebody else than before, the stream is of the wrong person. */
  | { kind: 'caller'; caller: string }
  /** `id`: the tab's own name for what it wants, until `leave`. */
  | { kind: 'follow'; id: number; run: string; after: number }
  | { kind: 'hold'; id: number; run: string }
  | { kind: 'rows'; id: number }
  | { kind: 'leave'; id: number }
  /** The last batch was handled: the next one may come. */
  | { kind: 'ack' }
  | { kind: 'ping' }
  /** Connect now. */
  | { kind: 'retry' }
  | { kind: 'bye' }

/** A conversation that somebody has just named. Without a title it has no words either. */
export interface NamedThread {
  id: string
  title?: string
}

/** What a tab gets at once, at most every 16 ms. */
export interface HubBatch {
  connection?: HubConnection
  /** By the `id` of a `follow`. */
  entries: [id: number, entries: Entry[]][]
  gone: [id: number, reason: GoneReason][]
  rows: RunRow[]
  titles?: NamedThread[]
  /** Agents were loaded again, or may have been while there was no connection. */
  agents?: true
  /** The hub does not know this tab any more: it must say everything again. */
  forgotten?: true
}
