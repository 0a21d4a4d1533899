/** A conversation as a page shows it: messages with their parts, each as far as it has come. */
import type { RequestView } from '../fold/run-view.ts'
import type { ErrorValue } from '../part/error.ts'
import type { Outcome } from '../part/part.ts'

/** A message of a conversation. Unchanged content is the same object, so a page need not draw it again. */
export interface AgentMessage {
  /** Unique in the conversation, and the same after a reload. That of an answer is its run's. */
  id: string
  role: 'user' | 'assistant' | 'system'
  /** The run that was asked this, or that says it. Absent if it is not known, and before the run has started. */
  runId?: string
  parts: readonly MessagePart[]
  /** Of an answer: how its run has ended. Absent while it runs or waits. */
  outcome?: Outcome
  error?: ErrorValue
}

/** A piece of a message. */
export type MessagePart =
  | { type: 'text' | 'reasoning'; text: string; state: 'streaming' | 'done' }
  | ToolPart
  | { type: 'file'; mediaType: string; url: string; filename?: string }
  | { type: 'source'; url?: string; title?: string }
  | { type: 'data'; name: string; id?: string; data: unknown }

/**
 * `input-streaming`: the model writes the arguments. `input-available`: the tool runs; with a `request` it runs in a client.
 * `approval-requested`: the `request` asks whether it may. Then the outcome.
 */
export type ToolState =
  | 'input-streaming'
  | 'input-available'
  | 'approval-requested'
  | 'output-available'
  | 'output-error'
  | 'output-denied'

/** A tool call. */
export interface ToolPart {
  type: 'tool'
  toolCallId: string
  toolName: string
  state: ToolState
  /** The arguments as the model writes them: JSON, which may be incomplete. */
  inputText: string
  /** The arguments, once they are complete. */
  input?: unknown
  output?: unknown
  errorText?: string
  /** The open request about this call. */
  request?: RequestView
  /** Of a call of an agent: what the agent does. It is no part of the answer. */
  agent?: AgentTrack
}

/** The work of an agent that a model has called as a tool. */
export interface AgentTrack {
  /** The agent's id. */
  agent: string
  /** The path of the call. */
  path: string
  /** `waiting`: it has asked a person or a client, or an agent below it has. `failed`: its result is an error. */
  status: 'running' | 'waiting' | 'done' | 'failed'
  /** What it says, and the tools that it calls. Agents that it calls are in the parts of those calls. */
  parts: readonly MessagePart[]
}
