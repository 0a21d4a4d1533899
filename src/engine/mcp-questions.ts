/** Questions of an MCP server in the middle of a call, as requests of the run: any protocol answers them. */
import type { EntryOf } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { McpQuestion, McpQuestions, McpReply } from '../tools/mcp/answer.ts'
import type { McpWork } from './mcp-work.ts'
import type { Scope } from './scope.ts'

/** Bytes of what a person fills in, as JSON. */
const mostContentBytes = 64 * 1024

/** Whether the server is told that people can be asked. */
export function canAsk({ canWait, handOver, cannotAsk, mcp }: Scope, server: string): boolean {
  return mcp?.servers.get(server)?.elicitation === true && canWait && !handOver && cannotAsk !== true
}

interface Asking {
  work: McpWork
  /** The number of the answer that asks. */
  round: number
  questions: McpQuestions
}

/** Asks what has not been asked, all at once, and resolves with the replies by the server's keys. Unwinds the run while it waits. */
export async function askAll(
  scope: Scope,
  path: string,
  { work, round, questions }: Asking,
): Promise<[string, McpReply][]> {
  const responses = new Map<string, EntryOf<'response'>>()
  const tasks = questions.map(([key, question]) => async () => {
    const tag = `${round}/${key}`
    const known = scope.state.asked
      .get(path)
      ?.find(({ request }) => request.kind === 'input' && request.metadata?.['question'] === tag)
    const response =
      known?.response ??
      (await scope.request(path, toRequest(scope, work, question, { tag, known: known?.request }), scope.signal))
    responses.set(key, response)
  })
  await scope.fork(tasks)
  return questions.map(([key, { mode }]) => [key, toReply(responses.get(key)!, mode)])
}

/** For legacy servers: the call stays open, and with it the run. */
export async function askInCall(scope: Scope, path: string, work: McpWork, question: McpQuestion): Promise<McpReply> {
  const tag = `call/${scope.state.asked.get(path)?.length ?? 0}`
  const request = toRequest(scope, work, question, { tag })
  const { requestId, deadline } = request
  const response = scope.request(path, request, scope.signal, 'holds')
  const late = setTimeout(
    () => {
      const isOpen = scope.state.open.requests.has(requestId) && !scope.signal.aborted
      if (isOpen) scope.emit(path, { type: 'response', requestId, outcome: 'closed', reason: 'deadline' })
    },
    Math.min(deadline - scope.now(), 2 ** 31 - 1),
  )
  try {
    return toReply(await response, question.mode)
  } finally {
    clearTimeout(late)
  }
}

function toRequest(
  scope: Scope,
  { server, tool }: McpWork,
  { mode, message, schema, url }: McpQuestion,
  { tag, known }: { tag: string; known?: EntryOf<'request'> | undefined },
) {
  return omitUndefined({
    requestId: known?.requestId ?? `${scope.runId}.${scope.newId()}`,
    kind: 'input' as const,
    reason: 'mcp-elicitation',
    // Under the name of the server: it is not Millrace that asks.
    message: [`The MCP server "${server}" asks: ${message}`, ...(url === undefined ? [] : [url])].join('\n'),
    schema,
    metadata: omitUndefined({ server, tool, mode, url, question: tag }),
    deadline: known?.deadline ?? scope.now() + scope.requestDeadline,
  })
}

function toReply({ answer }: EntryOf<'response'>, mode: McpQuestion['mode']): McpReply {
  if (answer?.kind !== 'input') return { action: 'cancel' }
  if (!('value' in answer)) return { action: answer.declined === true ? 'decline' : 'cancel' }
  if (mode === 'url') return { action: 'accept' }
  const { value } = answer
  const isContent = typeof value === 'object' && value !== null && !Array.isArray(value)
  const content = isContent ? (value as Record<string, unknown>) : {}
  if (new TextEncoder().encode(JSON.stringify(content)).length > mostContentBytes) {
    throw new MillraceError(
      'tool-failed',
      `The answer has more than ${mostContentBytes} bytes, so it was not passed on.`,
    )
  }
  return { action: 'accept', content }
}
