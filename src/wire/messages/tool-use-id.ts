/**
 * Ids of tool calls in the form of the protocol: letters, digits, `_` and `-`. Others are written as `part/openai-call-id.ts` writes them, which is read back
 * by itself.
 */
import { fromOpenAiCallId, toOpenAiCallId } from '../../part/openai-call-id.ts'

export function toToolUseId(id: string): string {
  return /^[\w-]{1,64}$/u.test(id) ? id : toOpenAiCallId(id)
}

/** Undoes {@link toToolUseId}, except of a hash. */
export function fromToolUseId(id: string): string {
  const made = fromOpenAiCallId(id)
  return toToolUseId(made) === id ? made : id
}
