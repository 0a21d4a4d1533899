/**
 * A run that has ended as the result of `tools/call`. Pure, and a function of the run alone: the same bytes at every poll.
 *
 * | run | result |
 * |---|---|
 * | completed, its agent has `output` | the value as `structuredContent`, and the same JSON as text |
 * | completed | the answer's text; without one, the run's output |
 * | ended in any other way | `isError`: the public message, then the text so far |
 * | image, audio | content, up to 1 MB together |
 * | file with text | embedded, up to 64 KB |
 * | any other file | a link to the resource |
 */
import type { ErrorValue } from '../../part/error.ts'
import type { Outcome } from '../../part/part.ts'
import type { RunView } from '../../fold/run-view.ts'
import { badOutput } from '../../fold/reply-messages.ts'
import { errorText } from '../../wire/wire.ts'
import { isObject } from '../access/told-principal.ts'
import { filesOf, sizeOf, standardBase64, textOfFile, type RunFile } from './run-files.ts'

export type Era = 'modern' | 'legacy'

/** A block of content, as MCP has it. */
export type ContentBlock =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; mimeType: string }
  | { type: 'resource'; resource: { uri: string; mimeType: string; text: string } }
  | { type: 'resource_link'; uri: string; name: string; mimeType?: string; size?: number }

export interface CallResult {
  content: ContentBlock[]
  /** Of modern clients any JSON, of legacy ones an object: another value stands in `{result}`. */
  structuredContent?: unknown
  isError?: true
  _meta: { 'millrace/run': string; 'millrace/thread': string }
}

export interface CallResultOptions {
  era: Era
  /** The agent had an `output` when the run started (see `readStored`). */
  hasOutput: boolean
  /** `metadata.mcp.threads`: the text ends with the thread's id. */
  showsThread?: boolean
}

const mostText = 1024 * 1024
const mostStructured = 4 * 1024 * 1024
const mostMedia = 1024 * 1024
const mostEmbedded = 64 * 1024

/** Of a run that has ended, in any way. `threadId` of the view: as the caller names it. */
export function toCallResult(view: RunView, { era, hasOutput, showsThread = false }: CallResultOptions): CallResult {
  const { runId, threadId, status, error, output } = view
  const _meta = { 'millrace/run': runId, 'millrace/thread': threadId }
  const more = [...fileBlocks(view), ...(showsThread ? [{ type: 'text' as const, text: `thread: ${threadId}` }] : [])]
  if (status !== 'completed') {
    const said = view.text === '' ? [] : textBlocks(`The answer so far:\n${view.text}`, view)
    const why = { type: 'text' as const, text: failureText(status as Outcome, error) }
    return { content: [why, ...said, ...more], isError: true, _meta }
  }
  if (!hasOutput) return { content: [...textBlocks(answerText(view), view), ...more], _meta }
  const json = JSON.stringify(output) ?? 'null'
  if (sizeOfText(json) > mostStructured) {
    const what = `The output has more than ${mostStructured / 1024 / 1024} MB, which the result of a tool may not have.`
    const why = { type: 'text' as const, text: failureText('failed', { code: badOutput, message: what }) }
    return { content: [why, runLink(view), ...more], isError: true, _meta }
  }
  const structuredContent = era === 'modern' || isObject(output) ? (output ?? null) : { result: output ?? null }
  const shown = structuredContent === output ? json : JSON.stringify(structuredContent)
  return { content: [...textBlocks(shown, view), ...more], structuredContent, _meta }
}

/** The `outputSchema` of a tool. Legacy clients demand an object: of another schema it is that of `{result}`. */
export function toOutputSchema(schema: Record<string, unknown>, era: Era): Record<string, unknown> {
  if (era === 'modern' || schema['type'] === 'object') return schema
  return { type: 'object', properties: { result: schema }, required: ['result'] }
}

const failures: Record<Outcome, string> = {
  completed: '',
  failed: 'The agent failed.',
  aborted: 'The run was stopped.',
  'budget-exceeded': 'The run has used up its budget.',
  'timed-out': 'The run took too long.',
  interrupted: 'The run was interrupted.',
}

function failureText(outcome: Outcome, error: ErrorValue | undefined): string {
  return error === undefined ? failures[outcome] : `${errorText(error)} (${error.code})`
}

/** What the answer says. An agent that streams no answer has its value. */
function answerText({ text, output }: RunView): string {
  if (text !== '' || output === undefined || output === null) return text
  return typeof output === 'string' ? output : JSON.stringify(output)
}

/** The start of a long text, and where the rest is. */
function textBlocks(text: string, view: RunView): ContentBlock[] {
  // A character has at most three bytes for each unit of its text.
  if (text.length * 3 <= mostText || sizeOfText(text) <= mostText) return text === '' ? [] : [{ type: 'text', text }]
  const bytes = new Uint8Array(mostText)
  const { read } = new TextEncoder().encodeInto(text, bytes)
  return [{ type: 'text', text: text.slice(0, read) }, runLink(view)]
}

function runLink({ runId, agent }: RunView): ContentBlock {
  return { type: 'resource_link', uri: runUri(runId), name: `${agent} ${runId}`, mimeType: 'text/markdown' }
}

function sizeOfText(text: string): number {
  return new TextEncoder().encode(text).length
}

function fileBlocks({ runId, messages }: RunView): ContentBlock[] {
  let left = mostMedia
  return filesOf(messages).map((file): ContentBlock => {
    const { mediaType, base64, name, url } = file
    const [, kind] = /^(image|audio)\//iu.exec(mediaType) ?? []
    const size = sizeOf(file)
    if (kind !== undefined && base64 !== undefined && size <= left) {
      left -= size
      return { type: kind.toLowerCase() as 'image' | 'audio', data: standardBase64(base64), mimeType: mediaType }
    }
    const uri = fileUri(runId, file)
    const text = size <= mostEmbedded ? textOfFile(file) : undefined
    if (text !== undefined) return { type: 'resource', resource: { uri, mimeType: mediaType, text } }
    return { type: 'resource_link', uri: url ?? uri, name, mimeType: mediaType, ...(base64 !== undefined && { size }) }
  })
}

export function runUri(runId: string): string {
  return `run://${encodeURIComponent(runId)}`
}

export function fileUri(runId: string, { n }: Pick<RunFile, 'n'>): string {
  return `${runUri(runId)}/files/${n}`
}

/** `threadId`: as the caller names it. */
export function threadUri(threadId: string): string {
  return `thread://${encodeURIComponent(threadId)}`
}
