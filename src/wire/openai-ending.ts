/**
 * Why an answer ended, in the protocol's four words. What is not known to be whole is `length`: a truncated answer must
 * never look complete. With several steps that answer at once, the one that was cut off decides.
 */
import type { EntryOf } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import { isUnder } from '../part/path.ts'
import type { OpenAiFinish } from './openai-output.ts'

export interface OpenAiEnding {
  readonly reason: OpenAiFinish
  /** The model said that its answer is an error, and no more. */
  readonly fault: ErrorValue | undefined
  /** Words of the answer came from this path. */
  said(path: string): void
  stepStart(entry: EntryOf<'step-start'>): void
  /** `handedOver`: to a client, of this step’s calls. */
  stepFinish(entry: EntryOf<'step-finish'>, handedOver: boolean): void
  answerEnd(entry: EntryOf<'answer-end'>, handedOver: boolean): void
  runEnd(handedOver: boolean): void
}

export function createOpenAiEnding(): OpenAiEnding {
  const answers = new Set<string>()
  const heard = new Set<string>()
  let last: string | undefined

  function note(finishReason: string, handedOver: boolean): void {
    const worse = toReason(finishReason, handedOver)
    if (severity[worse] > severity[ending.reason]) ending.reason = worse
    if (finishReason === 'error')
      ending.fault = { code: 'model-failed', message: 'The model ended its answer with an error.' }
  }

  const ending: { -readonly [K in keyof OpenAiEnding]: OpenAiEnding[K] } = {
    reason: 'stop',
    fault: undefined,
    said(path) {
      if (path !== last) heard.add((last = path))
    },
    stepStart({ step, answer }) {
      if (answer === true) answers.add(step)
    },
    stepFinish({ step, finishReason, error }, handedOver) {
      if (!answers.has(step)) return
      if (error === undefined) {
        if (finishReason !== undefined) note(finishReason, handedOver)
        return
      }
      // A branch may fail and the others go on: what it said is half of something.
      for (const path of heard) if (isUnder(path, step)) note('interrupted', false)
    },
    answerEnd: ({ finishReason }, handedOver) => note(finishReason, handedOver),
    runEnd: (handedOver) => note('stop', handedOver),
  }
  return ending
}

const severity: Record<OpenAiFinish, number> = { stop: 0, tool_calls: 1, content_filter: 2, length: 3 }

function toReason(finishReason: string, handedOver: boolean): OpenAiFinish {
  if (finishReason === 'stop') return handedOver ? 'tool_calls' : 'stop'
  // Without a call for the client it was the server's tools that the steps ran out for.
  if (finishReason === 'tool-calls') return handedOver ? 'tool_calls' : 'length'
  return finishReason === 'content-filter' ? 'content_filter' : 'length'
}
