/** Size limits for data from model providers and MCP servers. */
import { MillraceError } from '../../part/error.ts'

export interface ReadLimits {
  /** Maximum bytes of a line or an event of a stream, and of a message of an MCP server. */
  lineBytes: number
  /** Maximum bytes of a response body, after decompression. */
  bodyBytes: number
}

const mebibyte = 1024 * 1024

export const defaultReadLimits: ReadLimits = { lineBytes: 16 * mebibyte, bodyBytes: 64 * mebibyte }

/** Error responses are truncated to this size: only their message is used. */
export const errorBodyBytes = 256 * 1024

/** Default of `limits.answerChars`: maximum UTF-16 code units of one model answer. */
export const defaultAnswerChars = 16 * mebibyte

/** Default of `limits.toolCalls`: maximum tool calls of one model answer. */
export const defaultToolCalls = 1000

/** `who`: the subject of the message. */
export function lineTooLong(who: string, { lineBytes }: ReadLimits): MillraceError {
  const cure = 'Raise limits.lineBytes in the config to allow it.'
  return new MillraceError(
    'line-too-long',
    `${who} sent a line, event or message of more than ${lineBytes} bytes. ${cure}`,
  )
}

/** `bytes`: the limit, which is a multiple of `limits.bodyBytes` for a stream. */
export function bodyTooLarge(who: string, bytes: number): MillraceError {
  const cure = 'Raise limits.bodyBytes in the config to allow it.'
  return new MillraceError('body-too-large', `${who} sent a response of more than ${bytes} bytes. ${cure}`)
}

export function answerTooLong(chars: number): MillraceError {
  const cure = 'Raise limits.answerChars in the agent file or the config to allow it.'
  return new MillraceError('answer-too-long', `The answer of the model has more than ${chars} characters. ${cure}`)
}

export function tooManyToolCalls(calls: number): MillraceError {
  const cure = 'Raise limits.toolCalls in the agent file or the config to allow it.'
  return new MillraceError('too-many-tool-calls', `The model made more than ${calls} tool calls in one answer. ${cure}`)
}
