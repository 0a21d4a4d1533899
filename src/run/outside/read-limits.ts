/** How much is read from a model provider or an MCP server before the answer is cut off. */
import { MillraceError } from '../../part/error.ts'

export interface ReadLimits {
  /** Bytes of one line or one event of a stream, and of one message of an MCP server. */
  lineBytes: number
  /** Bytes of one response body, after decompression. */
  bodyBytes: number
}

const mebibyte = 1024 * 1024

export const defaultReadLimits: ReadLimits = { lineBytes: 16 * mebibyte, bodyBytes: 64 * mebibyte }

/** The body of an error response is read for its message only: what is longer is left out. */
export const errorBodyBytes = 256 * 1024

/** UTF-16 units of one model answer, when neither the agent nor the config says another number. */
export const defaultAnswerChars = 16 * mebibyte

/** `who` begins the sentence. */
export function lineTooLong(who: string, { lineBytes }: ReadLimits): MillraceError {
  const cure = 'Raise limits.lineBytes in the config to allow it.'
  return new MillraceError(
    'line-too-long',
    `${who} sent a line, event or message of more than ${lineBytes} bytes. ${cure}`,
  )
}

export function bodyTooLarge(who: string, { bodyBytes }: ReadLimits): MillraceError {
  const cure = 'Raise limits.bodyBytes in the config to allow it.'
  return new MillraceError('body-too-large', `${who} sent a response of more than ${bodyBytes} bytes. ${cure}`)
}

export function answerTooLong(chars: number): MillraceError {
  const cure = 'Raise limits.answerChars in the agent file or the config to allow it.'
  return new MillraceError('answer-too-long', `The answer of the model has more than ${chars} characters. ${cure}`)
}
