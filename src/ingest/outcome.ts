/** The outcome of a CLI agent: from its result, and from how its process ended. */
import type { ErrorValue } from '../part/error.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { FinishReason, ModelPart, ProviderMetadata } from '../part/model-part.ts'
import type { Outcome } from '../part/part.ts'
import { toUsage, type Usage } from '../part/usage.ts'

/** How a process ended, as Node reports it. */
export interface CliExit {
  code: number | null
  signal: string | null
}

/** The outcome of a CLI agent, once its output has ended. */
export interface CliOutcome {
  /** `completed`: it said its result, without an error, and its process exited with 0 (if its exit is known). */
  outcome: Extract<Outcome, 'completed' | 'failed' | 'interrupted'>
  /** Why it is not `completed`. */
  error?: ErrorValue
  /** The final answer. Sub-agents do not add to it. */
  text: string
  sessionId?: string
  model?: string
  /** The usage that it reported at its end, or else the sum of its earlier reports. */
  usage?: Usage
  /** In USD, if it reported its price. */
  cost?: number
  /** The answer as JSON, if it was asked for a schema. */
  structuredOutput?: unknown
}

type FinishPart = Extract<ModelPart, { type: 'finish' }>
export type FinishUsage = FinishPart['usage']

/** The result that a CLI reported at its end. */
export interface CliResult {
  /** Why it failed, in its own words. */
  error?: ErrorValue
  finishReason: FinishReason
  usage: FinishUsage
  cost?: number
  structuredOutput?: unknown
  providerMetadata?: ProviderMetadata
}

/** The known fields if there is no result. */
export interface CliRest {
  /** An error that it reported and did not get over. */
  error?: ErrorValue
  usage: FinishUsage
}

/** The facts at the end. */
export interface Ended {
  /** Its name, for messages: `Claude Code`. */
  who: string
  result: CliResult | undefined
  rest: CliRest
  exit: CliExit | undefined
  /** A person caused the exit. */
  isInterrupt: boolean
  /** The meaning of some exit codes of this CLI. */
  exitCodes?: Readonly<Record<number, string>>
}

/** Exit codes of programs that a signal has ended: 128 and its number. */
const signalCodes: ReadonlyMap<number, string> = new Map([
  [130, 'SIGINT'],
  [137, 'SIGKILL'],
  [143, 'SIGTERM'],
])

/** Success is a result without an error and exit 0, or an exit that nobody has seen. */
export function judge({
  who,
  result,
  rest,
  exit,
  isInterrupt,
  exitCodes,
}: Ended): Pick<CliOutcome, 'outcome' | 'error'> {
  const code = exit?.code ?? 0
  const signal = exit?.signal ?? signalCodes.get(code)
  if (result?.error !== undefined) {
    return { outcome: result.error.code === 'interrupted' ? 'interrupted' : 'failed', error: result.error }
  }
  if (signal !== undefined) return interrupted(`${who} was ended by ${signal}.`)
  if (rest.error !== undefined && result === undefined) return { outcome: 'failed', error: rest.error }
  if (isInterrupt && result === undefined) return interrupted(`${who} was interrupted in the middle of its turn.`)
  if (code !== 0) {
    const meaning = exitCodes?.[code]
    const why = meaning === undefined ? '' : ` (${meaning})`
    const when = result === undefined ? ' without a result' : ', although it said that it had succeeded'
    return { outcome: 'failed', error: { code: 'cli-exit', message: `${who} exited with code ${code}${why}${when}.` } }
  }
  if (result === undefined) return interrupted(`The output of ${who} ended without a result.`)
  return { outcome: 'completed' }
}

function interrupted(message: string): Pick<CliOutcome, 'outcome' | 'error'> {
  return { outcome: 'interrupted', error: { code: 'interrupted', message } }
}

/** The last part. */
export function toFinish({ outcome }: Pick<CliOutcome, 'outcome'>, { result, rest }: Ended): FinishPart {
  const raw = result?.finishReason.raw
  const finishReason: FinishReason =
    outcome === 'completed' && result !== undefined
      ? result.finishReason
      : { unified: outcome === 'failed' ? 'error' : 'other', raw: raw ?? outcome }
  return omitUndefined({
    type: 'finish' as const,
    finishReason,
    usage: result?.usage ?? rest.usage,
    providerMetadata: result?.providerMetadata,
  }) as FinishPart
}

export function toOutcome(
  judged: Pick<CliOutcome, 'outcome' | 'error'>,
  { result, rest }: Ended,
  said: { text: string; sessionId: string | undefined; model: string | undefined },
): CliOutcome {
  const { cost, structuredOutput } = result ?? {}
  const usage = toUsage(result?.usage ?? rest.usage)
  return omitUndefined({ ...judged, ...said, usage, cost, structuredOutput }) as CliOutcome
}
