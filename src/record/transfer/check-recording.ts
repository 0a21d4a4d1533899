/** Checks a recording as its bytes come, without keeping what it says: each line by its type, and their order. */
import type { Entry, EntryOf } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { createGrammar } from '../../fold/grammar.ts'
import { createNdjsonReader } from '../../store/ndjson.ts'
import { createWholeLines, LineError } from './whole-lines.ts'

/** Bytes of a line at most. */
export const longestLine = 16 * 1024 * 1024

export interface CheckedRecording {
  id: string
  /** Of the run's last owner, by the ids that it has given. */
  epoch: number
  /** Of its last entry. */
  lastSeq: number
  /** The runs that it names: see `checkPlace`. */
  named: Pick<EntryOf<'run-start'>, 'parentRunId' | 'previousRunId'>
}

/** `feed` and `end` throw `invalid-recording` with the first fault, and its line. */
export function checkRecording(name: string): { feed(bytes: Uint8Array): void; end(): CheckedRecording } {
  const lines = createWholeLines(longestLine)
  const reader = createNdjsonReader()
  const grammar = createGrammar()
  const checked: CheckedRecording = { id: '', epoch: 1, lastSeq: 0, named: {} }
  /** Lines that were read. */
  let read = 0

  function check(entries: readonly Entry[], text: string): void {
    for (const [i, entry] of entries.entries()) {
      const wrong = grammar.check(entry) ?? ownFault(entry)
      // A faulty line before it comes first.
      const line = reader.lines[i]!
      if (wrong !== undefined && !(reader.faults[0] !== undefined && reader.faults[0].line < line)) {
        throw invalidRecording(name, `line ${line}: ${wrong}`)
      }
      note(checked, entry)
    }
    // A crash may have cut the last line.
    const fault = reader.faults.find(({ torn }) => !torn)
    if (fault !== undefined) throw invalidRecording(name, `line ${fault.line}: ${fault.message}`)
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) read++
  }

  return {
    feed(bytes) {
      let text: string
      try {
        text = lines.feed(bytes)
      } catch (error) {
        if (!(error instanceof LineError)) throw error
        throw invalidRecording(name, `line ${read + error.before + 1}: ${error.message}`)
      }
      check(reader.feed(text), text)
    },
    end() {
      const entries = reader.feed(lines.end())
      check([...entries, ...reader.end()], '')
      if (checked.id === '') throw invalidRecording(name, 'no entries')
      return checked
    },
  }
}

/**
 * Inboxes of conversations, of idempotency keys and of test writes. A run of such an id would share its inbox with them, and take it along when
 * it is deleted: then a conversation would forget which turns it has had.
 */
const taken = /^(?:thread:|key:|store-test$)/u

/** What an id cannot be, and what a run cannot be to itself. */
function ownFault(entry: Entry): string | undefined {
  if (entry.type !== 'run-start') return undefined
  const { runId, parentRunId, previousRunId, forkedFrom } = entry
  if (taken.test(runId)) return 'runId must not be store-test, nor begin with thread: or key:'
  const named = { parentRunId, previousRunId, 'forkedFrom.runId': forkedFrom?.runId }
  const [field] = Object.entries(named).find(([, id]) => id === runId) ?? []
  return field && `${field} is the run itself`
}

function note(checked: CheckedRecording, entry: Entry): void {
  checked.lastSeq = entry.seq
  switch (entry.type) {
    case 'run-start': {
      const { runId, parentRunId, previousRunId } = entry
      checked.id = runId
      if (parentRunId !== undefined) checked.named.parentRunId = parentRunId
      if (previousRunId !== undefined) checked.named.previousRunId = previousRunId
      return
    }
    case 'text-start':
    case 'reasoning-start':
      return raise(checked, entry.id)
    case 'request':
      return raise(checked, entry.requestId.split('.').slice(-2).join('.'))
    default:
  }
}

/** Ids are `<epoch>.<n>`: the next owner's must be others. */
function raise(checked: CheckedRecording, id: string): void {
  const epoch = Number(/^(\d{1,9})\.\d+$/u.exec(id)?.[1])
  if (epoch > checked.epoch) checked.epoch = epoch
}

export function invalidRecording(name: string, fault: string): MillraceError {
  const message = `${name} is not a whole recording of a run: ${fault}. See: millrace verify`
  return new MillraceError('invalid-recording', message, { status: 400 })
}
