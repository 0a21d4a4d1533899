/** Tells whose output a line is, so that nobody has to say it. */
import { toEvent } from './event.ts'
import type { CliName } from './cli-names.ts'

const claudeTypes: ReadonlySet<unknown> = new Set([
  'system',
  'stream_event',
  'assistant',
  'user',
  'result',
  'rate_limit_event',
])
const geminiTypes: ReadonlySet<unknown> = new Set(['init', 'message', 'tool_use', 'tool_result', 'error', 'result'])

/**
 * The CLI that writes such a line; `ndjson` for an entry of a Millrace log; undefined if the line does not tell. Session files of the CLIs
 * count as their output: their parser says what is wrong with them.
 */
export function detectFormat(line: string): CliName | 'ndjson' | undefined {
  const event = toEvent(line)
  if (event === undefined) return undefined
  const { type } = event
  if (typeof type !== 'string') return undefined
  if (typeof event['seq'] === 'number' && typeof event['step'] === 'string') return 'ndjson'
  if (/^(?:thread\.|turn\.|item\.|session\.created$)/u.test(type) || 'payload' in event) return 'codex'
  if ('parentUuid' in event || 'leafUuid' in event || type === 'file-history-snapshot') return 'claude'
  // Gemini CLI names its session in one line only, and its result has a status instead of a subtype.
  const isOfGemini =
    type === 'init' || 'role' in event || 'tool_id' in event || (type === 'result' && 'status' in event)
  if (geminiTypes.has(type) && isOfGemini) return 'gemini'
  if (claudeTypes.has(type) && ('session_id' in event || 'sessionId' in event)) return 'claude'
  return undefined
}
