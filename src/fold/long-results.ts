/**
 * Long results of tools. The log has them whole. A model is told the beginning, the end, the size, the shape of JSON, and a handle with which the
 * built-in tool `readResult` reads the rest. Which results are shortened is decided before a model call and noted in its `prompt`; the text is made
 * from the result, so it is the same after a restart, in a fork, and in the thread's next run.
 */
import { grouped } from '../part/grouped.ts'
import { parseJson } from '../part/json.ts'
import type { Message, ToolOutput, ToolResultContent } from '../part/message.ts'
import { readBlock, readResultFiles, type ResultFile } from './result-files.ts'
import { smallResult } from './result-handle.ts'
import { resultLength } from './result-length.ts'
import { shapeOf } from './result-shape.ts'

/** The built-in tool that reads a long result. What it returns is never shortened as a long result: it would return handles for ever. */
export const readTool = 'readResult'

/** Characters of a result that a model gets whole, if the agent says nothing else. */
export const defaultInline = 30_000
/** Characters of the beginning and the end that a model gets of a long one. */
const beginning = 2000
const ending = 1000

/** The handle of a result, whether it is long or not. One that no log has, such as that of a client's own tool, is named by its call. */
export function handleIn({ handle, toolCallId }: Pick<ToolResultContent, 'handle' | 'toolCallId'>): string {
  return handle ?? `res_in_${toolCallId}`
}

const lengths = new WeakMap<ToolResultContent, number>()
/** What a result is longer than. */
const above = new WeakMap<ToolResultContent, number>()

/** Counts no further than it must. */
export function isLonger(content: ToolResultContent, most: number): boolean {
  const length = lengths.get(content)
  if (length !== undefined) return length > most
  if (most <= (above.get(content) ?? -1)) return true
  const counted = resultLength(valueOf(content.output), most, blockLength)
  if (counted > most) above.set(content, most)
  else lengths.set(content, counted)
  return counted > most
}

/** Characters that a model gets. */
export function lengthOf(content: ToolResultContent): number {
  let length = lengths.get(content)
  if (length === undefined) {
    length = resultLength(valueOf(content.output), Infinity, blockLength)
    lengths.set(content, length)
  }
  return length
}

/** A mark in place of a file has about as many characters. */
const markLength = 60

function blockLength(fields: Record<string, unknown>): number | undefined {
  const block = readBlock(fields)
  return typeof block === 'object' ? markLength : block?.length
}

export function valueOf(output: ToolOutput): unknown {
  return output.type === 'execution-denied' ? (output.reason ?? '') : output.value
}

/** The text of a result as a model gets it, with a mark in place of each file. */
export function textOfResult(value: unknown): { text: string; files: ResultFile[] } {
  if (typeof value === 'string') return { text: value, files: [] }
  return readResultFiles(value) ?? { text: JSON.stringify(value) ?? '', files: [] }
}

/** Undefined if the result is no JSON. A text may be JSON, too. */
export function jsonOfResult(value: unknown): unknown {
  if (typeof value === 'object') return value
  if (typeof value !== 'string' || !/^\s*[[{]/u.test(value)) return undefined
  try {
    return parseJson(value)
  } catch {
    return undefined
  }
}

/** The results of a conversation, in order. A program may have sent others that are none. */
export function* resultsIn(messages: readonly Message[]): Generator<ToolResultContent, void, void> {
  for (const { role, content } of messages) {
    if (role === 'tool' && Array.isArray(content)) for (const part of content) if (isResult(part)) yield part
  }
}

function isResult({ type, output }: Partial<ToolResultContent>): boolean {
  return type === 'tool-result' && typeof output === 'object' && output !== null
}

/** Adds the handles of the results that are longer than what may be told of their tool. */
export function addLong(
  handles: Set<string>,
  messages: readonly Message[],
  inline: (toolName: string) => number,
): void {
  for (const result of resultsIn(messages)) {
    if (result.shortened === true || result.toolName === readTool) continue
    if (isLonger(result, Math.max(smallResult, inline(result.toolName)))) handles.add(handleIn(result))
  }
}

/** The messages as a model is told them: the results with these handles are shortened. The same messages, if there are none. */
export function withShortened(
  messages: readonly Message[],
  handles: Pick<ReadonlySet<string>, 'has' | 'size'>,
): Message[] {
  if (handles.size === 0) return messages as Message[]
  return messages.map((message): Message => {
    if (message.role !== 'tool' || !Array.isArray(message.content)) return message
    const isLong = (result: ToolResultContent) => {
      return isResult(result) && result.shortened !== true && handles.has(handleIn(result))
    }
    if (!message.content.some(isLong)) return message
    return { ...message, content: message.content.map((result) => (isLong(result) ? shortened(result) : result)) }
  })
}

export interface OldResults {
  /** How much of the newest messages stays as it is, in the unit of `size`. */
  keep: number
  /** The size of a message: called for each one, and for each result of a tool message as a message of its own. Default: its characters. */
  size?(message: Message): number
}

/**
 * For a window that is full: the messages with every result of more than 4 KB shortened to its handle, except those within the newest `keep`. All at
 * once, so that the prompt's beginning changes only now. `handles`: the results that it shortened; the `prompt` of the call notes them. A result that
 * is read in pieces is left out with the words that the same call reads it again.
 */
export function oldResultsAsHandles(
  messages: readonly Message[],
  { keep, size = charactersOf }: OldResults,
): { messages: Message[]; handles: string[] } {
  const handles = new Set<string>()
  let newer = 0
  for (const message of messages.toReversed()) {
    const results = [...resultsIn([message])]
    if (results.length === 0) newer += size(message)
    for (const result of results.toReversed()) {
      newer += size({ role: 'tool', content: [result] })
      if (newer > keep && result.shortened !== true && isLonger(result, smallResult)) handles.add(handleIn(result))
    }
  }
  return { messages: withShortened(messages, handles), handles: [...handles] }
}

function charactersOf(message: Message): number {
  let length = 0
  for (const result of resultsIn([message])) length += lengthOf(result)
  if (length > 0) return length
  return typeof message.content === 'string' ? message.content.length : resultLength(message.content)
}

const made = new WeakMap<ToolResultContent, ToolResultContent>()

/** Each call of a loop sends what the calls before it were told: the text is made once. */
function shortened(result: ToolResultContent): ToolResultContent {
  let short = made.get(result)
  if (short === undefined) {
    short = { ...result, handle: handleIn(result), shortened: true, output: shortOutput(result) }
    made.set(result, short)
  }
  return short
}

function shortOutput(result: ToolResultContent): ToolOutput {
  const { output, toolName } = result
  const isError = output.type === 'error-text' || output.type === 'error-json'
  const said = (text: string): ToolOutput => ({ type: isError ? 'error-text' : 'text', value: text })
  if (toolName === readTool) return said('[Left out to make room. The same call reads it again.]')
  const value = valueOf(output)
  const { text, files } = textOfResult(value)
  const short = shortText(text, { handle: handleIn(result), json: files.length > 0 ? undefined : jsonOfResult(value) })
  if (files.length === 0) return said(short)
  const blocks = files.map(({ mediaType, data, filename }) => {
    return { type: 'file', mediaType, data, ...(filename !== undefined && { filename }) }
  })
  return { type: isError ? 'error-json' : 'json', value: [{ type: 'text', text: short }, ...blocks] }
}

function shortText(text: string, { handle, json }: { handle: string; json: unknown }): string {
  const first = text.slice(0, endAt(text, beginning))
  const last = text.slice(endAt(text, Math.max(first.length, text.length - ending)))
  const left = text.length - first.length - last.length
  const about = [
    `This result is long: ${grouped(text.length)} characters${json === undefined ? '' : ' of JSON'}. Below are its first ${grouped(first.length)} and its last ${grouped(last.length)}.`,
    `It is kept as ${handle}: ${readTool} reads the rest.`,
    ...(json === undefined ? [] : [`Its shape: ${shapeOf(json)}`]),
  ]
  return `[${about.join('\n')}]\n\n${first}\n\n[… ${grouped(left)} characters left out …]\n\n${last}`
}

/** Never between the halves of a character. */
export function endAt(text: string, at: number): number {
  return at > 0 && at < text.length && /[\uD800-\uDBFF]/u.test(text[at - 1]!) ? at - 1 : at
}
