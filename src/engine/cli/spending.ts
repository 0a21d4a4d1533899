/**
 * The usage of a CLI agent since its last report. Codex and Gemini report only at their end, so until then a budget counts an estimate, and so does
 * the run if they are stopped early: 4 characters per token, and each model call reads the whole conversation so far.
 */
import type { SourcePart, UsagePart } from '../../part/part.ts'
import { estimateUsage } from '../../part/usage.ts'
import type { Speaking } from '../limits.ts'
import { costOf } from '../model-call.ts'
import type { Scope } from '../scope.ts'

export interface Spending {
  /** A model call begins. */
  call(): void
  said(part: SourcePart): void
  /** The report with its price: the agent's own, or the one from the config. */
  reported(part: UsagePart): UsagePart
  /** The unreported usage. Call it when no more reports will come. */
  rest(): UsagePart | undefined
}

export interface SpendingOptions {
  prompt: string
  model?: string | undefined
}

export function createSpending({ registry, speaking }: Scope, path: string, { prompt, model = '' }: SpendingOptions) {
  const price = registry.pricing?.get(model)
  const since: Speaking = {
    inputCharacters: 0,
    outputCharacters: 0,
    price: price && { input: price.input / 1e6, output: price.output / 1e6 },
  }
  let context = prompt.length
  let name = model
  /** The cost so far by the config's prices, until the agent reports its own. */
  let paid = 0
  speaking.set(path, since)

  function reported(part: UsagePart): UsagePart {
    since.inputCharacters = 0
    since.outputCharacters = 0
    name = part.model
    const { usage, cost } = part
    if (cost !== undefined && cost !== 0) {
      const rest = cost - paid
      paid = 0
      return { ...part, cost: rest }
    }
    const known = costOf(usage, registry.pricing?.get(part.model) ?? price)
    if (known === undefined) return part
    paid += known
    return { ...part, cost: known }
  }

  return {
    call: () => void (since.inputCharacters += context),
    said(part) {
      let length = 0
      if (part.type === 'text-delta' || part.type === 'reasoning-delta' || part.type === 'tool-input-delta') {
        length = part.delta.length
        since.outputCharacters += length
      } else if (part.type === 'tool-result') length = lengthOf(part.result)
      context += length
    },
    reported,
    rest() {
      speaking.delete(path)
      if (since.inputCharacters + since.outputCharacters === 0) return undefined
      const usage = estimateUsage(since.inputCharacters, since.outputCharacters)
      return reported({ type: 'usage', model: name === '' ? 'unknown' : name, usage })
    },
  } satisfies Spending
}

function lengthOf(result: unknown): number {
  return typeof result === 'string' ? result.length : (JSON.stringify(result)?.length ?? 0)
}
