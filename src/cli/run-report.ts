/** Prints the outcome of a run to stderr and returns the exit code. */
import type { CommandContext } from './context.ts'
import { wholeMessage } from '../part/error.ts'
import type { EntryOf } from '../part/entry.ts'
import { answerLines } from './answer-line.ts'
import type { Followed } from './follow-run.ts'
import { printable } from './printable.ts'
import type { Ending } from './stop-signals.ts'

export interface Reported {
  id: string
  followed: Followed
  /** Flags that other commands need to find the run. */
  where: string
  /** Print nothing if the run completed. */
  isQuiet?: boolean
  /** Set if a signal ended the command. */
  ending?: Ending | undefined
}

/** Prints how the run ended or what it waits for. Returns the exit code. */
export function reportRun(context: CommandContext, { id, followed, where, isQuiet = false, ending }: Reported): number {
  const { end, waiting, handedOver, isLineOpen } = followed
  // On a terminal, the notice of the signal has ended the line already.
  if (isLineOpen && !(ending !== undefined && context.stdout.isTTY)) context.stdout.write('\n')
  if (end === undefined) {
    const lines = answerLines(id, waiting, where)
    print(context, `suspended: ${id} waits for an answer. Answer with:`, ...lines)
    return ending?.code ?? 1
  }
  if (!isQuiet || end.outcome !== 'completed') print(context, lastLine(end))
  if (handedOver.length > 0) {
    const names = [...new Set(handedOver)].join(', ')
    print(
      context,
      `${names}: runs in the client, and a run that is not recorded cannot wait for its result. Remove --data none.`,
    )
    return ending?.code ?? 1
  }
  return end.outcome === 'completed' ? 0 : (ending?.code ?? 1)
}

function lastLine({ outcome, error, usage }: EntryOf<'run-end'>): string {
  const { inputTokens, outputTokens, source } = usage
  // A run without a model call has no tokens.
  const isSilent = (inputTokens ?? 0) + (outputTokens ?? 0) === 0
  const tokens = isSilent ? '' : `; ${inputTokens ?? '?'} tokens in, ${outputTokens ?? '?'} out (${source})`
  const why = error === undefined ? '' : `: ${wholeMessage(error).replace(/\.+$/u, '')}`
  return `${outcome}${why}${tokens}`
}

function print(context: CommandContext, ...lines: string[]): void {
  context.stderr.write(`${printable(lines.join('\n'))}\n`)
}
