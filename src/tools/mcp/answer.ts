/** What an MCP server answers a call with: a result, questions to a person, or a task that goes on. Everything in it comes from outside and is bounded. */
import type { CallToolResult } from '@modelcontextprotocol/client'
import { MillraceError } from '../../part/error.ts'
import { isDeepText } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'
import { shownText } from '../../part/shown-text.ts'
import { isObject } from '../../pipeline/json-schema/keywords.ts'

/** A question of a server to a person. */
export interface McpQuestion {
  /** `url`: the person opens a page of the server, and says so. */
  mode: 'form' | 'url'
  /** Without characters that cannot be seen. */
  message: string
  /** `form`: JSON Schema of the content. */
  schema?: Record<string, unknown>
  /** `url`: http or https. It is shown whole, and never fetched. */
  url?: string
}

/** What a person says to it, in the words of MCP. */
export type McpReply =
  | { action: 'accept'; content?: Record<string, unknown> }
  | { action: 'decline' }
  | { action: 'cancel' }

/** Questions by the server's own keys. */
export type McpQuestions = readonly (readonly [key: string, question: McpQuestion])[]

/** A call that goes on at the server. */
export interface McpTaskState {
  /** The server's own id of it: whoever has it may read the result. */
  id: string
  status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  /** What it does, for people. */
  words?: string
  /** ms until the next poll, as the server wants it. */
  pollMs?: number
  /** `input_required` */
  questions?: McpQuestions
  /** Absent while it goes on. */
  outcome?: McpTaskOutcome
}

export type McpTaskOutcome = { value: unknown } | { error: string }

/** An error result is thrown instead. */
export type McpAnswer =
  | { kind: 'result'; value: unknown }
  /** The call is sent again, with the replies and this state. */
  | { kind: 'input'; questions: McpQuestions; state?: string }
  | { kind: 'task'; task: McpTaskState }

/** Bytes of the state of a call that asks, in UTF-8. */
export const mostStateBytes = 64 * 1024
/** Bytes of the questions of one answer. */
const mostQuestionBytes = 64 * 1024
const mostQuestions = 16
const mostFormDepth = 32
const mostMessage = 4000
const mostLines = 20
/** Characters of what a server says of a call that goes on. */
const mostWords = 500
/** Characters of a task's id. */
const longestTaskId = 1024

const statuses = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const

/** `who`: `The MCP server "crm"`. Throws `tool-failed` for questions that cannot be asked. */
export function readQuestions(given: unknown, who: string): McpQuestions {
  if (given === undefined) return []
  if (!isObject(given)) throw refused(who, 'asked something that is no list of questions')
  const list = Object.entries(given)
  if (list.length > mostQuestions)
    throw refused(who, `asked ${list.length} questions at once; at most ${mostQuestions} are passed on`)
  if (sizeOf(given) > mostQuestionBytes) throw refused(who, `asked with more than ${mostQuestionBytes} bytes`)
  return list.map(([key, request]) => {
    const method = isObject(request) ? ownValue(request, 'method') : undefined
    if (method !== 'elicitation/create')
      throw refused(who, `asked for ${JSON.stringify(method)?.slice(0, 60)}, which is not offered`)
    return [key, readQuestion(ownValue(request as Record<string, unknown>, 'params'), who)] as const
  })
}

/** `params` of `elicitation/create`. */
export function readQuestion(params: unknown, who: string): McpQuestion {
  if (!isObject(params)) throw refused(who, 'asked a question without params')
  const { mode = 'form', message, requestedSchema, url } = params
  if (typeof message !== 'string') throw refused(who, 'asked a question without a message')
  const shown = fewLines(shownText(message, mostMessage))
  if (mode === 'url') {
    const protocol = typeof url === 'string' ? URL.parse(url)?.protocol : undefined
    if (protocol !== 'https:' && protocol !== 'http:')
      throw refused(who, 'asked to open something that is no http or https address')
    // As it will be opened: characters that look like others are written out.
    return { mode, message: shown, url: new URL(url as string).href }
  }
  if (mode !== 'form') throw refused(who, `asked a question of the mode ${JSON.stringify(mode)?.slice(0, 40)}`)
  if (!isObject(requestedSchema) || requestedSchema['type'] !== 'object')
    throw refused(who, 'asked a question without the schema of a form')
  const text = textOfSchema(requestedSchema)
  if (text === undefined || isDeepText(text, mostFormDepth))
    throw refused(who, `asked with a form that is nested deeper than ${mostFormDepth} levels`)
  if (new TextEncoder().encode(text).length > mostQuestionBytes)
    throw refused(who, `asked with a form of more than ${mostQuestionBytes} bytes`)
  return { mode, message: shown, schema: requestedSchema }
}

/** Undefined if it is so deep that it cannot be written. */
function textOfSchema(schema: object): string | undefined {
  try {
    return JSON.stringify(schema)
  } catch {
    return undefined
  }
}

/** So many that the name of the server stays in sight: nothing of it can look like another question. */
function fewLines(text: string): string {
  const lines = text
    .replaceAll(/\n\s*\n/gu, '\n\n')
    .trim()
    .split('\n')
  return lines.length <= mostLines ? lines.join('\n') : `${lines.slice(0, mostLines).join('\n')}…`
}

/** The state that the retry brings back, unchanged. */
export function readState(given: unknown, who: string): string | undefined {
  if (given === undefined) return undefined
  if (typeof given !== 'string') throw refused(who, 'sent a requestState that is not text')
  const bytes = new TextEncoder().encode(given).length
  if (bytes > mostStateBytes)
    throw refused(who, `sent a requestState of ${bytes} bytes; at most ${mostStateBytes} are kept`)
  return given
}

/** `id`: of the task that was asked for. */
export function readTask(given: unknown, who: string, id?: string): McpTaskState & { result?: CallToolResult } {
  const { taskId, status, statusMessage, pollIntervalMs, inputRequests, result, error } = isObject(given) ? given : {}
  const known = statuses.find((each) => each === status)
  const isId = typeof taskId === 'string' && /^[\x21-\x7e]+$/u.test(taskId) && taskId.length <= longestTaskId
  if (!isId || known === undefined) throw refused(who, 'sent a task without a valid taskId and status')
  if (id !== undefined && taskId !== id) throw refused(who, 'answered for another task')
  const isTime = typeof pollIntervalMs === 'number' && pollIntervalMs >= 0
  return {
    id: taskId,
    status: known,
    ...(typeof statusMessage === 'string' && { words: shownText(statusMessage, mostWords) }),
    ...(isTime && { pollMs: pollIntervalMs }),
    ...(known === 'input_required' && { questions: readQuestions(inputRequests, who) }),
    ...(known === 'failed' && { outcome: { error: `${who} failed at its task: ${failureIn(error)}` } }),
    ...(known === 'cancelled' && { outcome: { error: `${who} has cancelled its task.` } }),
    ...(known === 'completed' && { result: readResult(result, who) }),
  }
}

/** What the server says of a call that goes on. Undefined if that is nothing. */
export function readProgress({ progress, total, message }: Record<string, unknown>): string | undefined {
  const words = typeof message === 'string' ? shownText(message, mostWords).trim() : ''
  const count = numberOf(progress)
  const all = numberOf(total)
  if (count === undefined) return words || undefined
  const done = all === undefined ? count : `${count} of ${all}`
  if (words === '') return done
  // Most servers say how far they are in their words.
  return all === undefined || words.includes(count) ? words : `${words} (${done})`
}

function numberOf(value: unknown): string | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? String(Math.round(value * 100) / 100) : undefined
}

function failureIn(error: unknown): string {
  const message = isObject(error) ? ownValue(error, 'message') : undefined
  return typeof message === 'string' ? shownText(message, 2000) : 'it does not say why.'
}

function readResult(given: unknown, who: string): CallToolResult {
  const content = isObject(given) ? (ownValue(given, 'content') ?? []) : undefined
  if (!Array.isArray(content) || !content.every((each) => isObject(each) && typeof each['type'] === 'string')) {
    throw refused(who, 'ended a task without a result')
  }
  return { ...(given as object), content } as CallToolResult
}

function refused(who: string, what: string): MillraceError {
  return new MillraceError('tool-failed', `${who} ${what}.`)
}

function sizeOf(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length
}

/**
 * Converts a tool result to a value: the structured content if present, the text if all blocks are text (joined by newlines), else the list of content
 * blocks. Throws `tool-failed` with the tool's text for `isError`. `forModel`: pictures and the like that stand beside the structured content are kept,
 * in a list with it.
 */
export function toValue(
  { content, structuredContent, isError }: CallToolResult,
  failed: string,
  forModel = false,
): unknown {
  if (isError === true) throw new MillraceError('tool-failed', textOf(content) || failed)
  if (structuredContent !== undefined) {
    const others = forModel ? content.filter(({ type }) => type !== 'text') : []
    if (others.length === 0) return structuredContent
    return [{ type: 'text', text: withoutBytes(structuredContent, others) }, ...others]
  }
  return content.every((block) => block.type === 'text') ? textOf(content) : content
}

/** Some servers put the whole content into the structured one, too: a model gets bytes once, as what they are. */
function withoutBytes(structured: unknown, others: CallToolResult['content']): string {
  const bytes = new Set(others.flatMap((block) => bytesOf(block) ?? []))
  return JSON.stringify(structured, (_, value: unknown) =>
    typeof value === 'string' && bytes.has(value) ? '(see the file)' : value,
  )
}

function bytesOf(block: CallToolResult['content'][number]): string | undefined {
  if ('data' in block) return block.data
  return block.type === 'resource' && 'blob' in block.resource ? block.resource.blob : undefined
}

function textOf(content: CallToolResult['content']): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}
