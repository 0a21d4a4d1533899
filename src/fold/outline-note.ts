/** What to show beside an entry in an outline: a few words, not its content. */
import type { Entry } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'

const longest = 200

export function cut(text: string): string {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text
}

/** Without what only the entry needs to have. */
export function briefError({ code, message, status, step }: ErrorValue): ErrorValue {
  return {
    code,
    message: cut(String(message)),
    ...(status !== undefined && { status }),
    ...(step !== undefined && { step }),
  }
}

export function noteOf(entry: Entry): string | undefined {
  try {
    const words: unknown = wordsOf(entry)
    return typeof words === 'string' && words !== '' ? cut(words) : undefined
  } catch {
    // Programs may append entries whose fields are not what they should be.
    return undefined
  }
}

function wordsOf(entry: Entry): string | undefined {
  switch (entry.type) {
    case 'run-start':
    case 'resume':
      return entry.agent
    case 'run-end':
      return entry.error?.message ?? entry.outcome
    case 'answer-end':
      return entry.finishReason
    case 'finish':
      return entry.finishReason.unified
    case 'prompt':
    case 'usage':
    case 'session-info':
      return entry.model
    case 'response-metadata':
      return entry.modelId
    case 'tool-call':
    case 'tool-result':
      return entry.toolName
    case 'request':
      return entry.toolName ?? entry.message
    case 'response':
      return entry.outcome === 'closed' ? entry.reason : entry.outcome
    case 'error':
    case 'retry':
      return entry.error.message
    case 'warning':
      return entry.message
    case 'cli-output':
      return entry.raw
    case 'data':
      return entry.name
    case 'source':
      return entry.title ?? (entry.sourceType === 'url' ? entry.url : undefined)
    case 'file':
    case 'reasoning-file':
      return entry.mediaType
    case 'custom':
      return entry.kind
    default:
      return undefined
  }
}

/** Whether an entry says that something failed. */
export function hasFailed(entry: Entry): boolean {
  if (entry.type === 'tool-result') return entry.isError === true
  return entry.type === 'error' || (entry.type === 'run-end' && entry.error !== undefined)
}
