/** Tells whose output a line is, so that nobody has to say it. */
import { toEvent } from './event.ts'
import { allClis, cliTitles, type CliName } from './cli-names.ts'
import type { ErrorValue } from '../part/error.ts'
import { isObject, objectOf } from './values.ts'

type Event = Record<string, unknown>

/**
 * The CLI that writes such a line; `ndjson` for an entry of a Millrace log; undefined if the line does not tell. Session files of the CLIs
 * count as their output: their parser reports their faults.
 */
export function detectFormat(line: string): CliName | 'ndjson' | undefined {
  const event = toEvent(line)
  return event && formatOf(event)
}

/** The same for an event. */
export function formatOf(event: Event): CliName | 'ndjson' | undefined {
  const { type } = event
  if (typeof type !== 'string' || otherCli(event) !== undefined) return undefined
  if (typeof event['seq'] === 'number' && typeof event['step'] === 'string') return 'ndjson'
  if (/^(?:thread\.|turn\.|item\.|session\.created$)/u.test(type) || 'payload' in event) return 'codex'
  if ('parentUuid' in event || 'leafUuid' in event || type === 'file-history-snapshot') return 'claude'
  if (isOfGemini(type, event)) return 'gemini'
  if (isOfQwen(type, event)) return 'qwen'
  return isOfClaude(type, event) ? 'claude' : undefined
}

const geminiTypes: ReadonlySet<unknown> = new Set(['init', 'message', 'tool_use', 'tool_result', 'error', 'result'])

/** Gemini CLI names its session in one line only, and its result has a status instead of a subtype. */
function isOfGemini(type: string, event: Event): boolean {
  if (!geminiTypes.has(type)) return false
  return type === 'init' || 'role' in event || 'tool_id' in event || (type === 'result' && 'status' in event)
}

/** Lines like those of Claude Code, with counts of its own, and its version at the start. */
function isOfQwen(type: string, event: Event): boolean {
  if (type === 'system') return 'qwen_code_version' in event
  if (type === 'stream_event') return objectOf(event['event'])['type'] === 'goal_state'
  const usage = type === 'assistant' ? objectOf(event['message'])['usage'] : type === 'result' && event['usage']
  return 'total_tokens' in objectOf(usage)
}

/** Not every version and every line names the session. */
function isOfClaude(type: string, event: Event): boolean {
  switch (type) {
    case 'system':
      return typeof event['subtype'] === 'string'
    case 'result':
      return typeof event['subtype'] === 'string' || typeof event['is_error'] === 'boolean'
    case 'stream_event':
      return isObject(event['event'])
    case 'assistant':
    case 'user':
      return isObject(event['message'])
    case 'rate_limit_event':
    case 'command_lifecycle':
      return true
    default:
      return false
  }
}

/** The name of a CLI agent that writes such a line, and whose output cannot be read. */
export function otherCli(event: Event): string | undefined {
  const { type } = event
  if (event['role'] === 'meta' && typeof type === 'string') return 'Kimi CLI'
  if (typeof type !== 'string') return undefined
  if (typeof event['sessionID'] === 'string') return 'OpenCode'
  if (isOfDroid(type, event)) return 'Droid'
  if (copilotType.test(type) && isObject(event['data'])) return 'GitHub Copilot CLI'
  if (type === 'session' && typeof event['version'] === 'number') return 'Pi'
  if (type === 'hook_event' || (type === 'agent_event' && isObject(event['event']))) return 'Cline'
  return undefined
}

const copilotType = /^(?:session|user|assistant|model|tool|hook|subagent|abort|permission)\.[a-z_]+$/u

/** It begins as Claude Code does. */
function isOfDroid(type: string, event: Event): boolean {
  if (type === 'system') return 'reasoning_effort' in event && !('claude_code_version' in event)
  if (typeof event['session_id'] !== 'string') return false
  if (type === 'completion') return 'finalText' in event
  if (type === 'tool_call') return 'toolName' in event
  return (type === 'message' || type === 'reasoning') && typeof event['text'] === 'string' && !('content' in event)
}

/** Undefined for a line that this CLI may have written; for the first lines only. */
export function notOf(cli: CliName, event: Event): ErrorValue | undefined {
  const other = otherCli(event)
  if (other !== undefined) return { code: 'unknown-format', message: `This is the output of ${other}${unread}` }
  const found = formatOf(event)
  if (found === undefined || found === 'ndjson' || found === cli) return undefined
  const message = `This is the output of ${cliTitles[found]}, not of ${cliTitles[cli]}. Name it: ${found} instead of ${cli}.`
  return { code: 'unknown-format', message }
}

/** Ends a sentence about the output of another CLI. */
export const unread = `, which Millrace does not read. It reads that of ${allClis}.`
