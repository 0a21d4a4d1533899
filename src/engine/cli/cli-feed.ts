/** What the run watches while a CLI agent works: the length of its output, its budgets, and the agent file's callbacks. */
import type { SourcePart, UsagePart } from '../../part/part.ts'
import { parseInput } from '../../fold/tool-loop.ts'
import { answerTooLong } from '../../models/outside/read-limits.ts'
import type { CliAgentConfig } from '../../pipeline/cli-agent-config.ts'
import { lengthOf } from '../model-feed.ts'
import type { Scope } from '../scope.ts'
import { createSpending, type SpendingOptions } from './spending.ts'
import { createTranscript } from './transcript.ts'

export interface CliFeed {
  /** Throws when a limit is exceeded. `isDone`: its result is there, so a budget need not stop it any more. */
  part(part: SourcePart, isDone: boolean): void
  /** It was stopped: what it has used counts, as it reports it or as an estimate. */
  giveUp(report: UsagePart | undefined): void
  /** It is done: closes what is open. */
  end(): void
}

type Options = Pick<CliAgentConfig, 'onStreamPart' | 'onProgress' | 'onToolCall'> & SpendingOptions

export function createCliFeed(scope: Scope, path: string, options: Options): CliFeed {
  const { limits, answerChars } = scope
  const spending = createSpending(scope, path, options)
  const transcript = createTranscript(scope, path, () => spending.call())
  const written = new Set<string>()
  let length = 0
  /** The model call whose text came last, and whether that text ends a line. */
  let lastCall: string | undefined
  let isAtLineStart = true

  function part(given: SourcePart, isDone: boolean): void {
    length += 'delta' in given ? given.delta.length : lengthOf(given, written)
    if (length > answerChars) throw answerTooLong(answerChars)
    if (given.type === 'tool-input-start') written.add(given.id)
    spending.said(given)
    const said = given.type === 'usage' ? spending.reported(given) : given
    tell(said, transcript.part(said))
    if (!isDone) for (const limit of limits) if (limit.watches) limit.check()
  }

  /** The text wire's rule: a blank line between the texts of two model calls, unless the first ends in a newline. */
  function paragraph(call: string, delta: string): string {
    const gap = call === lastCall || isAtLineStart ? '' : '\n\n'
    lastCall = call
    isAtLineStart = delta.endsWith('\n')
    return gap + delta
  }

  function tell(said: SourcePart, call: string | undefined): void {
    const { onStreamPart, onProgress, onToolCall } = options
    if (onStreamPart !== undefined) void scope.invoke(onStreamPart, said)
    if (onProgress !== undefined && said.type === 'text-delta' && said.delta !== '' && call !== undefined) {
      void scope.invoke(onProgress, paragraph(call, said.delta))
    }
    if (onToolCall === undefined || said.type !== 'tool-call') return
    const { toolCallId, toolName, input } = said
    void scope.invoke(onToolCall, { toolCallId, toolName, input: parseInput(input) })
  }

  return {
    part,
    giveUp(report) {
      const rest = spending.rest()
      if (rest !== undefined) transcript.part(rest)
      if (report !== undefined) transcript.part(spending.reported(report))
    },
    end() {
      spending.rest()
      transcript.end()
    },
  }
}
