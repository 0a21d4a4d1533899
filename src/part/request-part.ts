/** Questions of a run to a person or a client, and their answers. */
import type { Actor, Role } from './principal.ts'

/** Whether a person must approve a tool call. `roles`: only callers with one of them may; admins always may. */
export type Approval = boolean | { roles: readonly Role[] }

/** `request`: a question to a person or a client about a tool call. Answered at most once, over any protocol. */
export interface ToolRequest {
  type: 'request'
  requestId: string
  kind: 'tool' | 'approval'
  toolCallId: string
  toolName: string
  input: unknown
  /** Of an approval: only callers with one of these roles may answer, and admins. Absent: everybody who may answer the run. */
  roles?: readonly Role[]
  /** Epoch ms; after that the request is closed as unavailable. */
  deadline: number
}

/** `request`: a question of a step to a person or a client, without a tool call. */
export interface InputRequest {
  type: 'request'
  requestId: string
  kind: 'input'
  /** Why the step asks, as a word for programs. */
  reason?: string
  /** The question, for people. */
  message?: string
  /** JSON Schema of the value. Another value is refused. */
  schema?: Record<string, unknown>
  /** More data for a client that shows the question. */
  metadata?: Record<string, unknown>
  deadline: number
}

interface WithoutCall {
  toolCallId?: never
  toolName?: never
  input?: never
  roles?: never
}

/** A question to a person or a client. */
export type RequestPart = ToolRequest | (InputRequest & WithoutCall)

/** `response`: the end of a request: its answer, or `closed` with the reason (deadline, new turn, end of the run). */
export interface ResponsePart {
  type: 'response'
  requestId: string
  outcome: 'answered' | 'closed'
  answer?: Reply
  reason?: string
  protocol?: string
  /** Who answered. Absent: nobody in particular. */
  by?: Actor
}

/** A client's answer to a request: a tool's output (or error), whether it approves, or a value (or that there will be none). */
export type Reply =
  | { kind: 'tool'; output: unknown; isError?: boolean }
  | {
      kind: 'approval'
      approved: boolean
      reason?: string
      /** Other arguments for the tool. They must fit its schema. Only with `approved: true`. */
      input?: unknown
    }
  | { kind: 'input'; value: unknown }
  /** `declined`: the person has said no, and not only closed the question. */
  | { kind: 'input'; cancelled: true; declined?: true }
