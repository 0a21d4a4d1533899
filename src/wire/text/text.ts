/**
 * The plain text wire: only the text of the answer.
 *
 * | part | frame |
 * |---|---|
 * | `text-delta` of the answer | its text; parallel branches in file order, so text of later ones is buffered in memory (`answer-words.ts`); structured output when it is complete and valid (`held-text.ts`). A blank line precedes the text of each further model call, unless the text so far ends in a newline |
 * | `answer-end` | none; the body ends here, complete |
 * | `message` of a request that reads on from there | none; the body ends here, complete |
 * | `suspend` (not resumed since) | none; the body ends here, complete: no more text comes until the run is resumed |
 * | `run-end` completed, no step answered | the run's output: a string as it is, anything else as JSON |
 * | `run-end` with another outcome before `answer-end` | none: plain text has no frame for a failure; the transfer is aborted |
 * | `step-reset` of text that was sent | none: sent text cannot be retracted; the transfer is aborted |
 * | all others (reasoning, tools, sources, files, data, usage …) | dropped: plain text cannot carry them |
 */
import type { Entry } from '../../part/entry.ts'
import { createAnswerWords, outputText } from '../answer-words.ts'
import { createAnswering } from '../../fold/answering.ts'
import { plain } from '../framing/text-frames.ts'
import { createHeldText } from '../held-text.ts'
import { turnAt } from '../turn-end.ts'
import { createWire, type Projection, type Sink, type WireContext } from '../wire.ts'

/** The text of the answer, without frames. */
export const textWire = createWire({ name: 'text', project: projectText, framing: plain, isRaw: true })

function projectText({ send }: Sink<string>, { resumedAt = 0 }: WireContext): Projection {
  const answering = createAnswering()
  const words = createAnswerWords()
  const held = createHeldText()

  function take(entry: Entry): void {
    const due = held.take(entry)
    if (due === undefined) apply(entry)
    else for (const each of due) apply(each)
  }

  function apply(entry: Entry): void {
    if (projection.state !== 'open') return
    switch (entry.type) {
      case 'text-delta':
        if (answering.has(entry.step)) send(words.add(entry))
        return
      case 'step-start':
        answering.note(entry)
        return send(words.add(entry))
      case 'step-finish':
        return send(words.add(entry))
      case 'step-reset':
        if (words.reset(entry.step)) projection.state = 'broken'
        return
      case 'suspend':
        if (entry.seq >= resumedAt) projection.state = 'complete'
        return
      case 'message': {
        const turn = turnAt(entry, resumedAt)
        if (turn === 'end') projection.state = 'complete'
        else if (turn === 'begin') words.restart()
        return
      }
      case 'answer-end':
        projection.state = 'complete'
        return
      case 'run-end':
        projection.state = entry.outcome === 'completed' ? 'complete' : 'broken'
        if (projection.state === 'complete' && !answering.started) send(outputText(entry.output))
        return
      default:
    }
  }

  const projection = {
    state: 'open' as Projection['state'],
    apply: take,
    fail: () => void (projection.state = 'broken'),
  }
  return projection
}
