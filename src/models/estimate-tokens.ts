/**
 * How many tokens a prompt has, without a tokenizer: characters by kind. One estimate for all decisions about a window.
 *
 * | kind | characters of a token |
 * |---|---|
 * | prose and code | 4 |
 * | JSON and tables: much punctuation | 2.7 |
 * | logs and numbers: mostly digits and punctuation | 2 |
 * | letters of other alphabets than Latin | 2.7 |
 * | Chinese, Japanese, Korean | 1.3 |
 * | base64 and other long runs without a space | 1.6 |
 *
 * An image counts 1,600 tokens, and each message 4.
 */
import type { Message, ToolResultContent, ToolSpec } from '../part/message.ts'

const image = 1600
const perMessage = 4

/** UTF-16 units that have one kind: a text may begin as prose and go on as JSON. */
const pieceLength = 512
/** From this length on, a run of letters, digits, `+`, `/`, `-` and `_` is no word. */
const longestWord = 48
/** The shares of punctuation and digits from which on a piece is JSON, or numbers. */
const dense = 0.16
const densest = 0.45

export function estimateText(text: string): number {
  let tokens = 0
  for (let at = 0; at < text.length; at += pieceLength)
    tokens += pieceTokens(text, at, Math.min(text.length, at + pieceLength))
  return tokens
}

function pieceTokens(text: string, from: number, to: number): number {
  let cjk = 0
  let others = 0
  let marks = 0
  let packed = 0
  let run = 0
  const endRun = () => {
    if (run >= longestWord) packed += run
    run = 0
  }
  for (let i = from; i < to; i++) {
    const code = text.charCodeAt(i)
    if (isWordLike(code)) run++
    else endRun()
    if (code < 0x80) {
      if (isMark(code)) marks++
    } else if (isCjk(code)) cjk++
    else if (code >= 0x370) others++
  }
  endRun()
  const rest = to - from - cjk - others - packed
  const share = marks / Math.max(1, to - from - packed)
  const perToken = share > densest ? 2 : share > dense ? 2.7 : 4
  return cjk / 1.3 + others / 2.7 + packed / 1.6 + Math.max(0, rest) / perToken
}

/** A digit, or punctuation other than of sentences. */
function isMark(code: number): boolean {
  if (code >= 0x30 && code <= 0x39) return true
  if (code <= 0x20 || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a)) return false
  return code !== 0x2c && code !== 0x2e && code !== 0x27
}

/** Of base64, hexadecimal, ids and signatures. */
function isWordLike(code: number): boolean {
  if ((code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39)) return true
  return code === 0x2b || code === 0x2f || code === 0x2d || code === 0x5f || code === 0x3d
}

/** Chinese, Japanese, Korean, their punctuation, and the halves of characters outside the first plane. */
function isCjk(code: number): boolean {
  return (code >= 0x2e80 && code <= 0x9fff) || (code >= 0xac00 && code <= 0xdfff) || code >= 0xf900
}

const known = new WeakMap<object, number>()

/** Cached by the message: each call of a loop asks for all of them. */
export function estimateMessage(message: Message): number {
  let tokens = known.get(message)
  if (tokens === undefined) known.set(message, (tokens = perMessage + contentTokens(message)))
  return tokens
}

export function estimateMessages(messages: readonly Message[]): number {
  let sum = 0
  for (const message of messages) sum += estimateMessage(message)
  return sum
}

export function estimateTools(tools: readonly ToolSpec[]): number {
  let tokens = known.get(tools)
  if (tokens === undefined) {
    tokens = 0
    for (const { name, description = '', inputSchema } of tools)
      tokens += estimateText(name + description) + estimateText(JSON.stringify(inputSchema)) + perMessage
    known.set(tools, tokens)
  }
  return tokens
}

function contentTokens({ role, content }: Message): number {
  if (typeof content === 'string') return estimateText(content)
  if (role === 'tool') return content.reduce((sum, result) => sum + resultTokens(result), 0)
  let sum = 0
  for (const part of content) {
    if (part.type === 'text' || part.type === 'reasoning') sum += estimateText(part.text)
    else if (part.type === 'file') sum += fileTokens(part.mediaType, part.data)
    else if (part.type === 'tool-call') sum += estimateText(part.toolName) + jsonTokens(part.input) + perMessage
    else if (part.type === 'tool-result') sum += resultTokens(part)
  }
  return sum
}

function resultTokens({ output }: ToolResultContent): number {
  const value = output.type === 'execution-denied' ? (output.reason ?? '') : output.value
  return perMessage + (typeof value === 'string' ? estimateText(value) : valueTokens(value))
}

/** A result may hold images. */
function valueTokens(value: unknown): number {
  let files = 0
  const text = JSON.stringify(value, (_, each: unknown) => {
    const { type, data, mediaType, mimeType } = (each ?? {}) as Record<string, unknown>
    const isFile = typeof type === 'string' && typeof data === 'string' && typeof (mediaType ?? mimeType) === 'string'
    if (!isFile) return each
    files++
    return null
  })
  return files * image + estimateText(text ?? '')
}

function jsonTokens(value: unknown): number {
  return typeof value === 'string' ? estimateText(value) : estimateText(JSON.stringify(value) ?? '')
}

/** Text is sent as it is; of other documents the providers count pages, as images. */
function fileTokens(mediaType: string, data: string): number {
  if (mediaType.startsWith('text/')) return (data.length * 3) / 4 / 4
  return mediaType.startsWith('image/') ? image : Math.max(image, data.length / 40)
}
