/**
 * The plain text wire: the answer's words and nothing else.
 *
 * | part | frame |
 * |---|---|
 * | `text-delta` of the answer | its text, as it is; that of parallel branches in the order the file declares, so a later one's is held in memory (`declared-order.ts`). Before the first words of a further model call stands a blank line, unless what was sent ends in a newline |
 * | `answer-end` | none; the body ends here, complete |
 * | `suspend` (not resumed since) | none; the body ends here, complete: the text so far is all there will be now |
 * | `run-end` completed, no step answered | the run's output: a string as it is, anything else as JSON |
 * | `run-end` with another outcome before `answer-end` | none: plain text has no frame for a failure; the transfer is broken |
 * | `step-reset` of text that was sent | none: what was sent cannot be taken back; the transfer is broken |
 * | all others (reasoning, tools, sources, files, data, usage …) | dropped: plain text has no place for them |
 */
import type { Entry } from '../part/entry.ts'
import { isUnder } from '../part/path.ts'
import { createAnswering } from './answering.ts'
import { createDeclaredOrder, type Spoken } from './declared-order.ts'
import type { Encoder, EncoderOptions, Wire } from './wire.ts'

export const textWire: Wire = {
  name: 'text',
  contentType: 'text/plain; charset=utf-8',
  keepAlive: '',
  createEncoder: createTextEncoder,
}

function createTextEncoder({ resumedAt = 0 }: EncoderOptions = {}): Encoder {
  const answering = createAnswering()
  const order = createDeclaredOrder()
  /** Paths whose words the client has got. */
  const spoken = new Set<string>()
  let isAtLineStart = true
  let state: Encoder['state'] = 'open'

  function apply(entry: Entry, muted: boolean): string {
    if (state !== 'open') return ''
    switch (entry.type) {
      case 'text-delta':
        if (!answering.speaks(entry.step)) return ''
        return say({ type: 'say', path: entry.step, text: entry.delta }, muted)
      case 'step-start':
        answering.note(entry)
        return entry.order === undefined ? '' : say({ type: 'start', path: entry.step, order: entry.order }, muted)
      case 'step-finish':
        return say({ type: 'finish', path: entry.step }, muted)
      case 'step-reset':
        order.forget(entry.step)
        for (const path of spoken) if (isUnder(path, entry.step)) state = 'broken'
        return ''
      case 'suspend':
        if (entry.seq >= resumedAt) state = 'complete'
        return ''
      case 'answer-end':
        state = 'complete'
        return ''
      case 'run-end':
        state = entry.outcome === 'completed' ? 'complete' : 'broken'
        return state === 'broken' || answering.started || muted ? '' : toText(entry.output)
      default:
        return ''
    }
  }

  /** What is held back has not been sent, so a client that resumes still gets it. */
  function say(event: Spoken, muted: boolean): string {
    let words = ''
    for (const { path, text } of order.take(event)) {
      if (text === '') continue
      // Kept up while muted as well: whoever resumes gets the bytes that the whole would have.
      const gap = isAtLineStart || spoken.has(path) ? '' : '\n\n'
      isAtLineStart = text.endsWith('\n')
      spoken.add(path)
      if (!muted) words += gap + text
    }
    return words
  }

  return {
    encode: (entry) => apply(entry, false),
    skip(entry) {
      apply(entry, true)
    },
    fail() {
      if (state === 'open') state = 'broken'
      return ''
    },
    get state() {
      return state
    },
  }
}

function toText(output: unknown): string {
  return typeof output === 'string' ? output : (JSON.stringify(output) ?? '')
}
