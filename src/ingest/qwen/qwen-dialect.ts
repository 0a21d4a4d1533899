/**
 * Qwen Code: `qwen -p … --output-format stream-json`, with or without `--include-partial-messages`. Its lines are like those of Claude Code.
 * Differences:
 *
 * - The `assistant` line of each block has an id of its own, although the blocks are one message. Pieces have no index besides 0.
 * - Input tokens include the cached ones, and the usage of a message comes with its last block only.
 * - The error of a result is an object, and there is no price.
 */
import { createClaudeDialect } from '../claude/claude-dialect.ts'
import type { Dialect, DialectOptions, TranscriptOutput } from '../transcript.ts'
import { isObject, numberOf, objectOf, objectsOf, textOf } from '../values.ts'

type JsonLine = Record<string, unknown>

export function createQwenDialect(said: TranscriptOutput, options: DialectOptions): Dialect {
  const dialect = createClaudeDialect(said, options, { who: 'Qwen Code', key: 'qwen', namesPrice: false })
  const { event } = dialect
  /** The message that each writer is at: the agent, and its sub-agents, by their calls. */
  const messages = new Map<string, { id: string; isStreamed: boolean }>()

  function lines(line: JsonLine): JsonLine[] {
    const parent = textOf(line['parent_tool_use_id']) ?? ''
    switch (line['type']) {
      case 'stream_event': {
        const raw = objectOf(line['event'])
        const id = textOf(objectOf(raw['message'])['id'])
        if (raw['type'] === 'message_start' && id !== undefined) messages.set(parent, { id, isStreamed: true })
        if (raw['type'] === 'message_stop') messages.delete(parent)
        return raw['type'] === 'goal_state' ? [] : [line]
      }
      case 'assistant':
        return assistant(line, parent)
      case 'user':
        messages.delete(parent)
        for (const { tool_use_id: call } of objectsOf(objectOf(line['message'])['content'])) {
          if (typeof call === 'string') messages.delete(call)
        }
        return [line]
      case 'result':
        messages.clear()
        return [{ ...line, usage: isObject(line['usage']) ? claudeUsage(line['usage']) : undefined }]
      default:
        return [line]
    }
  }

  function assistant(line: JsonLine, parent: string): JsonLine[] {
    const message = objectOf(line['message'])
    const { id, isStreamed } = messages.get(parent) ?? { id: textOf(message['id']) ?? '', isStreamed: false }
    const { usage, ...rest } = message
    // All blocks but the last of a message have zeros.
    const hasUsage = isObject(usage) && Boolean(numberOf(usage['input_tokens']) ?? numberOf(usage['output_tokens']))
    if (!hasUsage) {
      if (!isStreamed) messages.set(parent, { id, isStreamed })
      return [{ ...line, message: { ...rest, id } }]
    }
    if (!isStreamed) {
      messages.delete(parent)
      return [{ ...line, message: { ...rest, id, usage: claudeUsage(usage) } }]
    }
    const report = { type: 'message_delta', usage: claudeUsage(usage) }
    const { session_id: session, parent_tool_use_id: call } = line
    return [
      { ...line, message: { ...rest, id } },
      { type: 'stream_event', event: report, session_id: session, parent_tool_use_id: call },
    ]
  }

  return Object.assign(dialect, {
    event(line: JsonLine): boolean {
      let isAll = true
      for (const each of lines(line)) if (!event(each)) isAll = false
      return isAll
    },
  })
}

/** As Claude counts: input tokens without the cached ones. */
function claudeUsage(usage: JsonLine): JsonLine {
  const input = numberOf(usage['input_tokens'])
  const cached = numberOf(usage['cache_read_input_tokens']) ?? 0
  return { ...usage, input_tokens: input === undefined ? undefined : Math.max(0, input - cached) }
}
