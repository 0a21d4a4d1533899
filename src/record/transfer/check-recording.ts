/** Checks a recording as its bytes come, without keeping what it says. */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { createGrammar } from '../../fold/grammar.ts'
import { createNdjsonReader } from '../../store/ndjson.ts'

export interface CheckedRecording {
  id: string
  /** Of the run's last owner, by the ids that it has given. */
  epoch: number
  /** Of its last entry. */
  lastSeq: number
}

/** `feed` and `end` throw `invalid-recording` with the first fault. */
export function checkRecording(name: string): { feed(bytes: Uint8Array): void; end(): CheckedRecording } {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const reader = createNdjsonReader()
  const grammar = createGrammar()
  const checked: CheckedRecording = { id: '', epoch: 1, lastSeq: 0 }

  function check(entries: readonly Entry[]): void {
    // A crash may have cut the last line.
    const fault = reader.faults.find(({ torn }) => !torn)
    if (fault !== undefined) throw invalid(name, `line ${fault.line}: ${fault.message}`)
    for (const entry of entries) {
      const wrong = grammar.check(entry)
      if (wrong !== undefined) throw invalid(name, wrong)
      note(checked, entry)
    }
  }

  return {
    feed: (bytes) => check(reader.feed(decoder.decode(bytes, { stream: true }))),
    end() {
      check([...reader.feed(decoder.decode()), ...reader.end()])
      if (checked.id === '') throw invalid(name, 'no entries')
      return checked
    },
  }
}

function note(checked: CheckedRecording, entry: Entry): void {
  checked.lastSeq = entry.seq
  switch (entry.type) {
    case 'run-start':
      checked.id = entry.runId
      return
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

function invalid(name: string, fault: string): MillraceError {
  const message = `${name} is not a whole recording of a run: ${fault}. See: millrace verify`
  return new MillraceError('invalid-recording', message, { status: 400 })
}
