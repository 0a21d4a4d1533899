/**
 * Claude Code: `claude -p --output-format stream-json --verbose`. With `--include-partial-messages` a block comes twice: in pieces, as
 * the raw events of the API, and whole, in an `assistant` line before its end. What came in pieces is taken from the pieces.
 *
 * | line | parts |
 * | --- | --- |
 * | `system/init` | `session-info`, the first time |
 * | `stream_event` | the blocks of a message, its `response-metadata` and `usage` |
 * | `assistant` | the blocks that did not come in pieces |
 * | `user` | the results of tools |
 * | `result` | `usage`; `finish` at the end |
 * | all others | `cli-output` |
 */
import type { ProviderMetadata } from '../../part/model-part.ts'
import { compact } from '../../part/compact.ts'
import { numberOf, objectOf, objectsOf, textOf } from '../values.ts'
import type { Dialect, Said } from '../transcript.ts'
import type { CliResult } from '../outcome.ts'
import { createUsageMeter } from '../usage-meter.ts'
import { createMessages } from './messages.ts'
import { costOf, tokensOf, toResult } from './result.ts'
import { isSessionFile, sessionFileError } from './session-file.ts'

export function createClaudeDialect(said: Said): Dialect {
  const meter = createUsageMeter(said.part)
  let result: CliResult | undefined
  let resultText: string | undefined
  let prompt: string | undefined
  const messages = createMessages(said, meter)

  function init(line: Record<string, unknown>): boolean {
    const { cwd, tools, permissionMode } = line
    const facts = { cwd, tools, permissionMode, mcpServers: line['mcp_servers'], version: line['claude_code_version'] }
    return said.session({
      sessionId: textOf(line['session_id']),
      model: textOf(line['model']),
      providerMetadata: { claude: compact(facts) } as ProviderMetadata,
    })
  }

  function user(line: Record<string, unknown>): boolean {
    const { content } = objectOf(line['message'])
    const parent = textOf(line['parent_tool_use_id'])
    if (parent === undefined && !messages.hasSaid) {
      const text =
        typeof content === 'string' ? content : textOf(objectsOf(content).find(({ type }) => type === 'text')?.['text'])
      prompt ??= text
    }
    let isAll = Array.isArray(content) && content.length > 0
    for (const block of objectsOf(content)) if (!messages.result(block, parent)) isAll = false
    return isAll
  }

  function end(line: Record<string, unknown>): void {
    result = toResult(line, meter.total())
    resultText = textOf(line['result'])
    // The result of a command such as /cost is said nowhere else.
    if (result.error === undefined && resultText !== undefined && resultText !== '' && !messages.hasText)
      messages.text(resultText)
    meter.settle(said.model, tokensOf(line) ?? {}, costOf(line))
  }

  return {
    who: 'Claude Code',
    event(line) {
      const { type } = line
      if (line['session_id'] === undefined && isSessionFile(line)) {
        said.refuse(sessionFileError)
        return false
      }
      said.hint(line['session_id'])
      switch (type) {
        case 'stream_event':
          return messages.event(objectOf(line['event']), textOf(line['parent_tool_use_id']))
        case 'assistant':
          return messages.message(objectOf(line['message']), textOf(line['parent_tool_use_id']))
        case 'user':
          return user(line)
        case 'result':
          end(line)
          return true
        case 'system':
          if (line['subtype'] === 'init') {
            // Another turn: its result is still to come.
            result = undefined
            return init(line)
          }
          if (line['subtype'] === 'thinking_tokens') messages.thinking(numberOf(line['estimated_tokens']))
          if (line['subtype'] === 'permission_denied') messages.denied(textOf(line['tool_use_id']))
          return false
        case 'rate_limit_event': {
          const { status, rateLimitType } = objectOf(line['rate_limit_info'])
          if (status !== 'rejected') return false
          const which = typeof rateLimitType === 'string' ? ` (${rateLimitType})` : ''
          said.part({ type: 'warning', code: 'rate-limited', message: `Claude Code has reached a rate limit${which}.` })
          return false
        }
        default:
          return false
      }
    },
    get result() {
      return result
    },
    rest() {
      meter.giveUp(said.model)
      return { usage: meter.total() }
    },
    get text() {
      return (result?.error === undefined ? resultText : undefined) ?? messages.lastText
    },
    get prompt() {
      return prompt
    },
  }
}
