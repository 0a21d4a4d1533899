/** An estimate of a request's tokens, without a model: a quarter of its bytes, and 1,500 for each file. */
import type { Message } from '../../part/message.ts'
import type { SentInput } from '../../wire/sent-message.ts'

const perFile = 1500

export interface CountedRequest {
  sent: Pick<SentInput, 'messages'>
  lead: readonly Message[]
  /** With its tools. */
  input: Record<string, unknown>
}

export function estimateTokens({ sent, lead, input }: CountedRequest): number {
  let bytes = bytesOf(input['tools'])
  let files = 0
  for (const { content } of [...lead, ...sent.messages.map(({ message }) => message)]) {
    if (typeof content === 'string') bytes += bytesOf(content)
    else {
      for (const part of content) {
        if (part.type === 'file') files++
        else bytes += bytesOf(part.type === 'text' ? part.text : part)
      }
    }
  }
  return Math.ceil(bytes / 4) + files * perFile
}

function bytesOf(value: unknown): number {
  if (value === undefined) return 0
  return new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value)).byteLength
}
