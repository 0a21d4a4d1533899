/**
 * The plain text wire: only the text of the answer.
 *
 * | part | frame |
 * |---|---|
 * | `text-delta` of the answer | its text; parallel branches in file order, so text of later ones is buffered in memory (`answer-words.ts`); structured output when it is complete and valid (`held-text.ts`). A blank line precedes the text of each further model call, unless the text so far ends in a newline |
 * | `answer-end` | none; the body ends here, complete |
 * | `suspend` (not resumed since) | none; the body ends here, complete: no more text comes until the run is resumed |
 * | `run-end` completed, no step answered | the run's output: a string as it is, anything else as JSON |
 * | `run-end` with another outcome before `answer-end` | none: plain text has no frame for a failure; the transfer is aborted |
 * | `step-reset` of text that was sent | none: sent text cannot be retracted; the transfer is aborted |
 * | all others (reasoning, tools, sources, files, data, usage …) | dropped: plain text cannot carry them |
 */
import type { Entry } from '../../part/entry.ts'
import { createAnswerWords, outputText } from '../answer-words.ts'
import { createAnswering } from '../answering.ts'
import { createHeldText } from '../held-text.ts'
import type { Encoder, EncoderOptions, Wire } from '../wire.ts'

export const textWire: Wire = {
  name: 'text',
  contentType: 'text/plain; charset=utf-8',
  keepAlive: '',
  createEncoder: createTextEncoder,
}

function createTextEncoder({ resumedAt = 0 }: EncoderOptions = {}): Encoder {
  const answering = createAnswering()
  const words = createAnswerWords()
  const held = createHeldText()

  function take(entry: Entry): string {
    return held.take(entry)?.map(apply).join('') ?? apply(entry)
  }

  // Also used by `skip`, so that a resumed stream continues with exactly the same bytes.
  function apply(entry: Entry): string {
    if (encoder.state !== 'open') return ''
    switch (entry.type) {
      case 'text-delta':
        return answering.speaks(entry.step) ? words.add(entry) : ''
      case 'step-start':
        answering.note(entry)
        return words.add(entry)
      case 'step-finish':
        return words.add(entry)
      case 'step-reset':
        if (words.reset(entry.step)) encoder.state = 'broken'
        return ''
      case 'suspend':
        if (entry.seq >= resumedAt) encoder.state = 'complete'
        return ''
      case 'answer-end':
        encoder.state = 'complete'
        return ''
      case 'run-end':
        encoder.state = entry.outcome === 'completed' ? 'complete' : 'broken'
        return encoder.state === 'broken' || answering.started ? '' : outputText(entry.output)
      default:
        return ''
    }
  }

  const encoder = {
    state: 'open' as Encoder['state'],
    encode: take,
    skip: take,
    fail() {
      if (encoder.state === 'open') encoder.state = 'broken'
      return ''
    },
  }
  return encoder
}
