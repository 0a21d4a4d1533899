/** Answers the requests of one run that tools here can answer: executes them, and asks for approvals. */
import type { RequestView } from '../fold/run-view.ts'
import { messageOf } from '../part/error.ts'
import type { Confirm, NamedTool } from './client-tool.ts'
import type { ClientAnswer, MillraceClient } from './client.ts'

/** With the agents that lead to it, where it is not the run's own that asks. */
export type CallRequest = Extract<RequestView, { toolName: string }>

/** The call that `onConfirm` decides on. */
export interface Confirmation {
  runId: string
  /** The open request, with the tool's name and arguments. */
  request: CallRequest
  /** The question of the tool, if it has one. */
  message?: string
}

/** The answer to a {@link Confirmation}. */
export type Confirmed = boolean | { approved: boolean; reason?: string; input?: unknown }

export interface ServeOptions {
  client: MillraceClient
  /** Asked with each request: a page may change them. */
  tools(): readonly NamedTool[]
  /** The question, if anybody can be asked. */
  onConfirm(): ((confirmation: Confirmation) => Confirmed | Promise<Confirmed>) | undefined
  /** Requests that come may be answered already. */
  mayBeOld: boolean
  /** An answer was not accepted: the run waits for somebody else. */
  onRefused(): void
}

export interface ServedTools {
  /** Whether any request can be answered here. */
  readonly some: boolean
  /** Whether an open request is, or will be, answered here. */
  has(request: RequestView): boolean
  take(runId: string, request: RequestView): void
}

export function serveTools({ client, tools, onConfirm, mayBeOld, onRefused }: ServeOptions): ServedTools {
  const toolOf = (name: string) => tools().find((tool) => tool.name === name)
  /** Ids of requests whose answer was not accepted, or that nobody here wanted to answer. */
  const refused = new Set<string>()

  function answerOf(runId: string, request: RequestView): (() => Promise<ClientAnswer | undefined>) | undefined {
    if (request.kind === 'input') return undefined
    const tool = toolOf(request.toolName)
    if (request.kind === 'tool') return tool?.execute && (() => execute(tool, runId, request))
    if (typeof tool?.confirm !== 'function' && onConfirm() === undefined) return undefined
    return () => confirm(tool, runId, request)
  }

  async function confirm(
    tool: NamedTool | undefined,
    runId: string,
    request: CallRequest,
  ): Promise<ClientAnswer | undefined> {
    const asked = await questionOf(tool?.confirm, request.input)
    if (asked === false) return { approved: true }
    const message = typeof asked === 'string' ? { message: asked } : undefined
    const said = await onConfirm()?.({ runId, request, ...message })
    return typeof said === 'boolean' ? { approved: said } : said
  }

  /** Another page may answer first: then its answer counts, and the server rejects ours. */
  async function answer(
    runId: string,
    requestId: string,
    answerIt: () => Promise<ClientAnswer | undefined>,
  ): Promise<void> {
    try {
      const isOpen = async () => (await client.show(runId)).requests.some((each) => each.requestId === requestId)
      if (mayBeOld && !(await isOpen().catch(() => true))) return
      const answer = await answerIt()
      if (answer !== undefined) return void (await client.answer(runId, requestId, answer))
    } catch {
      // The run waits for somebody else.
    }
    refused.add(requestId)
    onRefused()
  }

  return {
    get some() {
      const asks = ({ execute, confirm }: NamedTool) => execute !== undefined || typeof confirm === 'function'
      return onConfirm() !== undefined || tools().some(asks)
    },
    has: (request) => !refused.has(request.requestId) && answerOf('', request) !== undefined,
    take(runId, request) {
      const answerIt = answerOf(runId, request)
      if (answerIt !== undefined) void answer(runId, request.requestId, answerIt)
    },
  }
}

/** The text of the question, or whether it must be asked. */
export async function questionOf(confirm: Confirm | undefined, input: unknown): Promise<boolean | string> {
  return typeof confirm === 'function' ? confirm(input) : confirm || true
}

async function execute(tool: NamedTool, runId: string, { toolCallId, input }: CallRequest): Promise<ClientAnswer> {
  try {
    return { output: (await tool.execute!(input, { runId, toolCallId })) ?? null }
  } catch (error) {
    return { output: messageOf(error), isError: true }
  }
}
