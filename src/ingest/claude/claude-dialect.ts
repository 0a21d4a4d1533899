/**
 * Claude Code: `claude -p --output-format stream-json --verbose`. With `--include-partial-messages` a block comes twice: in pieces, as
 * the raw events of the API, and whole, in an `assistant` line before its end. A block that came in pieces is read from the pieces.
 *
 * | line | parts |
 * | --- | --- |
 * | `system/init` | `session-info`, the first time |
 * | `stream_event` | the blocks of a message, its `response-metadata` and `usage` |
 * | `assistant` | the blocks that did not come in pieces |
 * | `user` | the results of tools |
 * | `result` | `usage` of the turn; `finish` at the end. Another turn may follow |
 * | `system/api_retry` | `warning` |
 * | `system/status`, `system/thinking_tokens` | none |
 * | all others | `cli-output` |
 */
import type { ProviderMetadata } from '../../part/model-part.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { numberOf, objectOf, objectsOf, textOf } from '../values.ts'
import { isContent } from '../../fold/normalise.ts'
import type { SourcePart } from '../../part/part.ts'
import type { Dialect, DialectOptions, TranscriptOutput } from '../transcript.ts'
import type { CliResult } from '../outcome.ts'
import { createUsageMeter } from '../usage-meter.ts'
import { createMessages } from './messages.ts'
import { createPaid, tokensOf, toResult } from './result.ts'
import type { ErrorValue } from '../../part/error.ts'

/** The program: Claude Code, or a CLI that has its format. */
export interface Flavour {
  who: string
  /** Its other fields, in `providerMetadata`. */
  key: 'claude' | 'qwen'
  namesPrice: boolean
}

const claude: Flavour = { who: 'Claude Code', key: 'claude', namesPrice: true }

export function createClaudeDialect(
  said: TranscriptOutput,
  _: DialectOptions,
  { who, key, namesPrice }: Flavour = claude,
): Dialect {
  const meter = createUsageMeter(said.part, namesPrice)
  const paid = createPaid()
  const tasks = createTasks()
  let result: CliResult | undefined
  let resultText: string | undefined
  let prompt: string | undefined
  /** Why it could not reach its model, as long as it has not. */
  let lastRetry: string | undefined
  const messages = createMessages({ part: content, key, modelOf: () => said.model }, meter)

  /** Output after a result begins another turn, whose result is still to come. */
  function content(part: SourcePart): void {
    if (isContent(part) && part.type !== 'tool-result') {
      result = undefined
      lastRetry = undefined
    }
    said.part(part)
  }

  function init(line: Record<string, unknown>): boolean {
    const { cwd, tools, permissionMode } = line
    const version = line['claude_code_version'] ?? line['qwen_code_version']
    const facts = { cwd, tools, permissionMode, mcpServers: line['mcp_servers'], version }
    return said.session({
      sessionId: textOf(line['session_id']),
      model: textOf(line['model']),
      providerMetadata: { [key]: omitUndefined(facts) } as ProviderMetadata,
    })
  }

  function retry(line: Record<string, unknown>): void {
    const status = numberOf(line['error_status'])
    const why = textOf(line['error']) ?? 'the request failed'
    lastRetry = status === undefined ? why : `${why} (HTTP ${status})`
    const { attempt, max_retries: most, retry_delay_ms: delay } = line
    const when = typeof delay === 'number' ? ` in ${Math.round(delay / 100) / 10} s` : ''
    const which =
      typeof attempt === 'number' ? ` (attempt ${attempt}${typeof most === 'number' ? ` of ${most}` : ''})` : ''
    const message = `${who} got no answer from its model: ${lastRetry}. It tries again${when}${which}.`
    said.part({ type: 'warning', code: 'cli-retry', message })
  }

  function user(line: Record<string, unknown>): boolean {
    const { content } = objectOf(line['message'])
    const parent = textOf(line['parent_tool_use_id'])
    // A synthetic one comes from the program, for its model.
    if (parent === undefined && !messages.hasSaid && line['isSynthetic'] !== true) {
      const text =
        typeof content === 'string' ? content : textOf(objectsOf(content).find(({ type }) => type === 'text')?.['text'])
      prompt ??= text
    }
    let isAll = Array.isArray(content) && content.length > 0
    for (const block of objectsOf(content)) if (!messages.result(block, parent)) isAll = false
    return isAll
  }

  function end(line: Record<string, unknown>): void {
    const cost = paid.add(line)
    const own = toResult(line, { who, key, ...paid.facts(line) })
    resultText = textOf(line['result'])
    // The result of a command such as /cost is said nowhere else.
    if (own.error === undefined && resultText !== undefined && resultText !== '' && !messages.hasText)
      messages.text(resultText)
    messages.endTurn()
    // Before the usage: a reader that counts it sees that nothing more comes.
    result = { ...own, usage: meter.total(), ...omitUndefined({ cost }) }
    const tokens = tokensOf(line)
    meter.settle(said.model, tokens ?? {}, cost, true)
    const { raw } = tokens ?? {}
    result.usage = { ...meter.total(), ...omitUndefined({ raw: raw as CliResult['usage']['raw'] }) }
  }

  return {
    who,
    event(line) {
      const { type } = line
      if (line['session_id'] === undefined && isSessionFile(line)) {
        said.refuse(sessionFileError)
        return false
      }
      said.hint(line['session_id'])
      switch (type) {
        case 'stream_event':
          return messages.event(
            objectOf(line['event']),
            textOf(line['parent_tool_use_id']),
            numberOf(objectOf(line['abandoned_blocks'])['from_block_index']),
          )
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
          if (line['subtype'] === 'thinking_tokens') {
            messages.thinking(numberOf(line['estimated_tokens']))
            return true
          }
          if (line['subtype'] === 'status') return true
          if (line['subtype'] === 'api_retry') {
            retry(line)
            return true
          }
          tasks.note(line)
          if (line['subtype'] === 'permission_denied') messages.denied(textOf(line['tool_use_id']))
          return false
        case 'rate_limit_event': {
          const { status, rateLimitType } = objectOf(line['rate_limit_info'])
          if (status !== 'rejected') return false
          const which = typeof rateLimitType === 'string' ? ` (${rateLimitType})` : ''
          said.part({ type: 'warning', code: 'rate-limited', message: `${who} has reached a rate limit${which}.` })
          return false
        }
        default:
          return false
      }
    },
    get result() {
      return result
    },
    get isBusy() {
      return tasks.areOpen
    },
    rest() {
      meter.giveUp(said.model)
      const error =
        lastRetry === undefined ? undefined : { code: 'cli-failed', message: `${who} failed: ${lastRetry}.` }
      return { usage: meter.total(), ...omitUndefined({ error }) }
    },
    get text() {
      return (result?.error === undefined ? resultText : undefined) ?? messages.lastText
    },
    get prompt() {
      return prompt
    },
  }
}

/**
 * Background tasks of Claude Code: commands and agents that outlive the turn that has started them. When one ends, another turn
 * may begin, behind a result.
 */
interface Tasks {
  /** A `system` line. */
  note(line: Record<string, unknown>): void
  readonly areOpen: boolean
}

/** Tasks that are remembered. */
const mostTasks = 1000

function createTasks(): Tasks {
  let open = new Set<string>()
  return {
    note(line) {
      const id = textOf(line['task_id']) ?? ''
      switch (line['subtype']) {
        case 'task_started':
          if (open.size < mostTasks) open.add(id)
          return
        case 'task_notification':
          open.delete(id)
          return
        case 'task_updated':
          if (ended.has(objectOf(line['patch'])['status'])) open.delete(id)
          return
        case 'background_tasks_changed': {
          const tasks = objectsOf(line['tasks']).filter(({ status }) => !ended.has(status))
          open = new Set(
            tasks.slice(0, mostTasks).map((task, i) => textOf(task['task_id']) ?? textOf(task['id']) ?? `${i}`),
          )
          return
        }
        default:
      }
    },
    get areOpen() {
      return open.size > 0
    },
  }
}

const ended: ReadonlySet<unknown> = new Set(['completed', 'failed', 'killed', 'stopped', 'cancelled'])

/* The files in which Claude Code keeps its sessions look like its output, but are another format. */

/** Whether a line without `session_id` is one of such a file. */
function isSessionFile(line: Record<string, unknown>): boolean {
  return (
    'parentUuid' in line ||
    'isSidechain' in line ||
    typeof line['sessionId'] === 'string' ||
    'leafUuid' in line ||
    line['type'] === 'file-history-snapshot'
  )
}

const sessionFileError: ErrorValue = {
  code: 'session-file',
  message:
    'This is a session file of Claude Code (~/.claude/projects/…), not its output: it looks alike, but is another format. ' +
    'Record the output instead: claude -p "…" --output-format stream-json --verbose --include-partial-messages > out.jsonl',
}
