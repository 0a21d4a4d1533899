/**
 * What a client keeps of a model's reasoning, for protocols whose clients return it (`thinking.signature`, `encrypted_content`): a name of the run and
 * the part that are in the log. The provider's own signature stays there, and the model gets it back from there.
 *
 * A token is opaque: sealed with a key of the store, so every instance opens those of all others. It says nothing to another server, and gives
 * nobody a run that is not theirs: whoever opens one looks the run up as the caller.
 */
import type { Log } from '../../part/log.ts'
import { createSeal } from '../../part/sealed-text.ts'

export interface ReasoningTokens {
  /**
   * The beginning of the tokens of a run, for `part/reasoning-token.ts`: the same each time, so that a response reads alike whenever it is read.
   * Undefined if the run's id is too long for a token.
   */
  sealReasoning(runId: string): Promise<string | undefined>
  /** Undefined for anything that this server has not sealed. */
  openReasoning(token: unknown): Promise<{ runId: string; part: number } | undefined>
}

/** Characters of a token. */
export const longestReasoningToken = 200
const prefix = 'mrthought_'
/** Room for the number of the part. */
const longestSealedRun = longestReasoningToken - prefix.length - '.999999'.length

/** `log`: of the whole store, not of a caller. */
export function createReasoningTokens(log: Pick<Log, 'post'>): ReasoningTokens {
  const seal = createSeal(log, 'reasoning', { longest: longestSealedRun, alike: true })
  return {
    async sealReasoning(runId) {
      const sealed = await seal.seal(runId)
      return sealed.length > longestSealedRun ? undefined : `${prefix}${sealed}`
    },
    async openReasoning(token) {
      if (typeof token !== 'string' || token.length > longestReasoningToken || !token.startsWith(prefix))
        return undefined
      const [, sealed, part] = /^([\w-]+)\.(\d{1,6})$/u.exec(token.slice(prefix.length)) ?? []
      const runId = sealed === undefined ? undefined : await seal.open(sealed)
      return runId === undefined ? undefined : { runId, part: Number(part) }
    },
  }
}
