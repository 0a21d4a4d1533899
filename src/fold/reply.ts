/** The output of a model call in a tool loop, and what became of its tool calls. */
import type { EntryOf } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { AssistantContent } from '../part/message.ts'
import type { FinishReason, ProviderMetadata } from '../part/model-part.ts'
import type { Usage } from '../part/usage.ts'

/** One tool call of a reply and its progress. */
export interface Call {
  toolCallId: string
  /** The provider's own id of the call, if it differs. */
  providerCallId?: string
  toolName: string
  /** JSON text, as the model wrote it. */
  input: string
  providerExecuted: boolean
  /** Path of the `tool-call` step, once the server has started to run the tool. */
  startedAt?: string
  /** Path of the step in which somebody was asked for approval. If it has finished and there is no result, the call was approved. */
  approvalAt?: string
  /** JSON text of the arguments with which it was approved, if they are others. */
  edited?: string
  /** Path of the step in which a client was asked for the result. */
  askedAt?: string
  /** The newest request about this call, and its end. */
  request?: EntryOf<'request'>
  response?: EntryOf<'response'>
  result?: EntryOf<'tool-result'>
}

/** One model call. `finish` is absent while it runs and if it was interrupted. */
export interface Reply {
  path: string
  content: AssistantContent[]
  calls: Call[]
  finish?: { reason: FinishReason; usage?: Usage; providerMetadata?: ProviderMetadata }
  /** The model of its prompt, or the fallback that was called instead. */
  model?: string
  /** Its usage, once reported. */
  usage?: Usage
  /** Its step has finished or was aborted: no more parts follow. */
  closed: boolean
  /** Why its step failed. */
  error?: ErrorValue
  /** What was wrong with its JSON; the next call tells the model. */
  rejected?: string
}
