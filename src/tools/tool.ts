/** A tool as an application registers it. */
import type { Message } from '../part/message.ts'
import type { RunUser } from '../part/principal.ts'
import type { Approval } from '../part/request-part.ts'

/** The second argument of a tool’s `execute`. */
export interface ToolContext {
  /** Aborts when the run ends, for any reason, and when the tool's own timeout expires. */
  signal: AbortSignal
  toolCallId: string
  runId: string
  threadId: string
  /** Who started the run, or forked it. Absent: it belongs to no one. */
  user?: RunUser
  /** The call's place in its trace (W3C Trace Context), to hand on. Absent if the run belongs to none. */
  traceparent?: string
  /** The conversation that led to the call. */
  messages: Message[]
  /**
   * Searches earlier messages: in this thread, and in other threads of this agent that belong to the same user. In runs that belong to no one, or
   * to a key, that is the same `$input.user`. Returns at most `limit` messages that contain all the words, newest first.
   */
  searchEarlier(words: string, limit: number): Promise<SaidEarlier[]>
}

/** A message of an earlier conversation. */
export interface SaidEarlier {
  threadId: string
  /** Epoch ms. */
  at: number
  by: 'user' | 'assistant'
  /** The words around the match, at most 200 characters. */
  text: string
}

/** A tool, following the Beddel contract. Without `execute` it runs in the client, and the run waits for its result. */
export interface ToolImplementation {
  description?: string
  /** A zod schema, any Standard Schema, or JSON Schema made with the AI SDK's `jsonSchema`. Input is validated before `execute`. */
  parameters: unknown
  /** `input` is the validated input. A thrown error becomes an error result, which the model sees. */
  execute?(input: any, context: ToolContext): unknown
  /** Running it twice does no harm. After a crash it is run again instead of being reported as unavailable. */
  idempotent?: boolean
  /** Its results change from call to call, so a `router` that repeats a call gets a new result instead of the previous one. */
  volatile?: boolean
  /** ms; default 60,000. */
  timeout?: number
  /** Whether a person must approve every call. `roles`: only callers with one of them may; admins always may. */
  approval?: Approval
}
