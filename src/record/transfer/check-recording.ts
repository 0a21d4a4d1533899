/** Checks a recording as its bytes come, without keeping its content: each line by its type, and their order. */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { FeedbackLine } from '../../part/feedback.ts'
import type { RunUser } from '../../part/principal.ts'
import { createGrammar } from '../../fold/grammar.ts'
import { createNdjsonReader } from '../../store/ndjson.ts'

/** Bytes of a line at most. */
export const longestLine = 16 * 1024 * 1024

/** The fields of a start that name other runs. */
export type RunReference = 'parentRunId' | 'previousRunId' | 'forkedFrom'

export interface CheckedRecording {
  id: string
  /** Of the run's last owner, by the ids that it has given. */
  epoch: number
  /** Of its last entry. */
  lastSeq: number
  /** The runs that it names: see `checkPlace`. */
  named: Partial<Record<RunReference, string>>
  /** Its thread, and whom it says that it belongs to. */
  threadId: string
  user?: RunUser
  /** What people said of it. */
  feedback: readonly FeedbackLine[]
}

/** `feed` and `end` throw `invalid-recording` with the first fault, and its line. */
export function checkRecording(name: string): { feed(bytes: Uint8Array): void; end(): CheckedRecording } {
  const lines = createWholeLines(longestLine)
  const reader = createNdjsonReader()
  const grammar = createGrammar()
  const checked: CheckedRecording = { id: '', epoch: 1, lastSeq: 0, named: {}, threadId: '', feedback: reader.feedback }
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
 * Inboxes of conversations, of idempotency keys, of keys and secrets of access, and of test writes. A run of such an id would share its inbox with
 * them, and take it along when it is deleted: then a conversation would forget which turns it has had, and the server which keys were revoked.
 */
const taken = /^(?:thread:|key:|access:|store-test$)/u

/** Ids that are not allowed, and references of a run to itself. */
function ownFault(entry: Entry): string | undefined {
  if (entry.type !== 'run-start') return undefined
  const { runId, parentRunId, previousRunId, forkedFrom } = entry
  if (taken.test(runId)) return 'runId must not be store-test, nor begin with thread:, key: or access:'
  const named = { parentRunId, previousRunId, 'forkedFrom.runId': forkedFrom?.runId }
  const [field] = Object.entries(named).find(([, id]) => id === runId) ?? []
  return field && `${field} is the run itself`
}

function note(checked: CheckedRecording, entry: Entry): void {
  checked.lastSeq = entry.seq
  switch (entry.type) {
    case 'run-start': {
      const { runId, parentRunId, previousRunId, forkedFrom, threadId, user } = entry
      checked.id = runId
      checked.threadId = threadId
      if (user !== undefined) checked.user = user
      if (parentRunId !== undefined) checked.named.parentRunId = parentRunId
      if (previousRunId !== undefined) checked.named.previousRunId = previousRunId
      if (forkedFrom !== undefined) checked.named.forkedFrom = forkedFrom.runId
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

/** Bytes as whole lines of text, wherever the bytes are cut. */
interface WholeLines {
  /** The lines that these bytes complete, with their line ends. Throws a {@link LineError}. */
  feed(bytes: Uint8Array): string
  /** The bytes after the last line end. A crash may have cut them inside a character. */
  end(): string
}

/** A line that cannot be read. */
class LineError extends Error {
  override readonly name = 'LineError'
  /** How many of the lines that were not returned yet come before it. */
  readonly before: number

  constructor(before: number, message: string) {
    super(message)
    this.before = before
  }
}

const lineEnd = 10

/** `longest`: bytes of a line. A longer one is not kept while it comes. */
function createWholeLines(longest: number): WholeLines {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  /** Of the line that is not complete. */
  let pieces: Uint8Array[] = []
  let length = 0

  function keep(bytes: Uint8Array, before: number): void {
    length += bytes.length
    if (length > longest) throw new LineError(before, `the line is longer than ${longest / 1024 / 1024} MiB`)
    if (bytes.length > 0) pieces.push(bytes)
  }

  function take(): Uint8Array {
    const whole = pieces.length === 1 ? pieces[0]! : new Uint8Array(length)
    if (pieces.length > 1) {
      let at = 0
      for (const piece of pieces) {
        whole.set(piece, at)
        at += piece.length
      }
    }
    pieces = []
    length = 0
    return whole
  }

  /** Of whole lines. */
  function decode(bytes: Uint8Array, before: number): string {
    try {
      if (bytes.length <= longest) return decoder.decode(bytes)
    } catch {
      // One of them is to blame.
    }
    let text = ''
    let line = before
    for (let from = 0; from < bytes.length; line++) {
      const end = bytes.indexOf(lineEnd, from) + 1
      keep(bytes.subarray(from, end), line)
      try {
        text += decoder.decode(take())
      } catch {
        throw new LineError(line, 'the line is not valid UTF-8')
      }
      from = end
    }
    return text
  }

  return {
    feed(bytes) {
      const first = bytes.indexOf(lineEnd) + 1
      keep(first === 0 ? bytes : bytes.subarray(0, first), 0)
      if (first === 0) return ''
      const last = bytes.lastIndexOf(lineEnd) + 1
      const text = decode(take(), 0) + decode(bytes.subarray(first, last), 1)
      const rest = bytes.subarray(last)
      keep(rest, rest.length > longest ? text.split('\n').length - 1 : 0)
      return text
    },
    end: () => new TextDecoder('utf-8', { ignoreBOM: true }).decode(take()),
  }
}
