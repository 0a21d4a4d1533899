/**
 * The `finish_reason` of an answer. An answer that is not known to be complete is `length`: a truncated answer must never look
 * complete. With several answering steps, a truncated one decides.
 */
import type { EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { isUnder } from '../../part/path.ts'
import type { OpenAiFinish } from './openai-output.ts'

export interface OpenAiEnding {
  readonly reason: OpenAiFinish
  /** The model finished with the reason `error`, without details. */
  readonly fault: ErrorValue | undefined
  /** Notes that text of the answer came from this path. */
  said(path: string): void
  stepStart(entry: EntryOf<'step-start'>): void
  /** `handedOver`: calls of this step were handed over to the client. */
  stepFinish(entry: EntryOf<'step-finish'>, handedOver: boolean): void
  answerEnd(entry: EntryOf<'answer-end'>, handedOver: boolean): void
  runEnd(handedOver: boolean): void
  /** The answer begins anew: what ended before it does not count. */
  restart(): void
}

export function createOpenAiEnding(): OpenAiEnding {
  return new Ending()
}

/** A class, because its functions would cost each answer more than what it knows. */
class Ending implements OpenAiEnding {
  reason: OpenAiFinish = 'stop'
  fault: ErrorValue | undefined = undefined
  readonly #answers = new Set<string>()
  readonly #heard = new Set<string>()
  #last: string | undefined = undefined

  said(path: string): void {
    if (path !== this.#last) this.#heard.add((this.#last = path))
  }

  stepStart({ step, answer }: EntryOf<'step-start'>): void {
    if (answer === true) this.#answers.add(step)
  }

  stepFinish({ step, finishReason, error }: EntryOf<'step-finish'>, handedOver: boolean): void {
    if (!this.#answers.has(step)) return
    if (error === undefined) {
      if (finishReason !== undefined) this.#note(finishReason, handedOver)
      return
    }
    // A branch may fail while others continue: its text is incomplete.
    for (const path of this.#heard) if (isUnder(path, step)) this.#note('interrupted', false)
  }

  answerEnd({ finishReason }: EntryOf<'answer-end'>, handedOver: boolean): void {
    this.#note(finishReason, handedOver)
  }

  runEnd(handedOver: boolean): void {
    this.#note('stop', handedOver)
  }

  #note(finishReason: string, handedOver: boolean): void {
    const worse = toReason(finishReason, handedOver)
    if (severity[worse] > severity[this.reason]) this.reason = worse
    if (finishReason === 'error')
      this.fault = { code: 'model-failed', message: 'The model ended its answer with an error.' }
  }

  restart(): void {
    this.reason = 'stop'
    this.fault = undefined
    this.#heard.clear()
    this.#last = undefined
  }
}

const severity: Record<OpenAiFinish, number> = { stop: 0, tool_calls: 1, content_filter: 2, length: 3 }

function toReason(finishReason: string, handedOver: boolean): OpenAiFinish {
  if (finishReason === 'stop') return handedOver ? 'tool_calls' : 'stop'
  // No call for the client: the step limit was reached while the server's tools were in use.
  if (finishReason === 'tool-calls') return handedOver ? 'tool_calls' : 'length'
  return finishReason === 'content-filter' ? 'content_filter' : 'length'
}
