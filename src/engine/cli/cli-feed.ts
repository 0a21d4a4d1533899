/** What the run watches while a CLI agent works: the length of its output, its budgets, its price, and the agent file's callbacks. */
import type { SourcePart, UsagePart } from '../../part/part.ts'
import { parseInput } from '../../fold/tool-loop.ts'
import { answerTooLong } from '../../models/outside/read-limits.ts'
import type { CliAgentConfig } from '../../pipeline/cli-agent-config.ts'
import { lengthOf } from '../model-feed.ts'
import { costOf } from '../pricing.ts'
import type { Scope } from '../scope.ts'
import { createTranscript } from './transcript.ts'

export interface CliFeed {
  /** Throws when a limit is exceeded. */
  part(part: SourcePart): void
  /** The agent was stopped: of its last parts, only what it has cost counts. */
  giveUp(parts: readonly SourcePart[]): void
  /** It is done: closes what is open. */
  end(): void
}

type Options = Pick<CliAgentConfig, 'model' | 'onStreamPart' | 'onProgress' | 'onToolCall'>

export function createCliFeed(scope: Scope, path: string, options: Options): CliFeed {
  const { limits, answerChars, registry } = scope
  const transcript = createTranscript(scope, path)
  const written = new Set<string>()
  let length = 0
  /** What the prices of the config say so far, until the agent names the price itself. */
  let estimated = 0

  function part(given: SourcePart): void {
    length += 'delta' in given ? given.delta.length : lengthOf(given, written)
    if (length > answerChars) throw answerTooLong(answerChars)
    if (given.type === 'tool-input-start') written.add(given.id)
    const said = given.type === 'usage' ? priced(given) : given
    const isAnswer = transcript.part(said)
    tell(said, isAnswer)
    if (given.type === 'usage') for (const limit of limits) if (limit.watches) limit.check()
  }

  function priced(given: UsagePart): UsagePart {
    const { usage, model, cost } = given
    if (cost !== undefined && cost !== 0) {
      const rest = cost - estimated
      estimated = 0
      return { ...given, cost: rest }
    }
    const price = registry.pricing?.get(model) ?? registry.pricing?.get(options.model ?? '')
    const known = costOf(usage, price)
    if (known === undefined) return given
    estimated += known
    return { ...given, cost: known }
  }

  function tell(said: SourcePart, isAnswer: boolean): void {
    const { onStreamPart, onProgress, onToolCall } = options
    if (onStreamPart !== undefined) void scope.invoke(onStreamPart, said)
    if (onProgress !== undefined && said.type === 'text-delta' && isAnswer) {
      void scope.invoke(onProgress, said.delta)
    }
    if (onToolCall === undefined || said.type !== 'tool-call') return
    const { toolCallId, toolName, input } = said
    void scope.invoke(onToolCall, { toolCallId, toolName, input: parseInput(input) })
  }

  return {
    part,
    giveUp(parts) {
      for (const each of parts) if (each.type === 'usage') transcript.part(priced(each))
    },
    end: transcript.end,
  }
}
