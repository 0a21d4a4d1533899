/**
 * Common to all CLI agents: lines become events, events become parts, and the parts are legal for any events.
 * `session-info` and `stream-start` come first and `finish` comes last, once each. Ids, missing ends and the order of calls are the
 * normaliser's business; a dialect only gives the meaning of a line.
 */
import { MillraceError, type ErrorValue } from '../part/error.ts'
import type { Entry } from '../part/entry.ts'
import type { ProviderMetadata } from '../part/model-part.ts'
import type { Part, SessionInfo, SourcePart } from '../part/part.ts'
import { createNormaliser } from '../fold/normalise.ts'
import { createOpenItems } from '../fold/open-items.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { Usage } from '../part/usage.ts'
import type { CliName } from './cli-names.ts'
import { notOf } from './detect.ts'
import { toEvent } from './event.ts'
import { createLineReader } from './line-reader.ts'
import { judge, toFinish, toOutcome, type CliExit, type CliOutcome, type CliRest, type CliResult } from './outcome.ts'
import type { CallIds } from '../fold/call-ids.ts'

/** The context of a dialect. */
export interface DialectOptions {
  /**
   * The usage of a session before this run, if known. Codex reports the usage of a whole session, so that a resumed one would count
   * it again.
   */
  usedBefore?: (sessionId: string) => Usage | undefined
}

/** Options of a parser. */
export interface CliParserOptions extends DialectOptions {
  /** Maximum length of a line, in characters; default 64 Mi. A longer line gives an `error` part, and the next one is read. */
  maxLineLength?: number
  /** The model to name if the output names none. */
  model?: string
}

/** A parser that hands out each part at once; see `createCliReader`. */
export interface CliReader {
  feed(bytes: Uint8Array | string): void
  end(exit?: CliExit): void
  readonly isDone: boolean
  outcome(): CliOutcome
  readonly prompt: string | undefined
  /** Set once the input turns out to be of another format: nothing more of it can be read. */
  readonly refusal: ErrorValue | undefined
}

/** The receiver of a {@link CliReader}. */
export interface CliReaderOptions extends CliParserOptions {
  onPart(part: SourcePart): void
  /** Called before the parts of a line that says when it was written: epoch ms. */
  onTime?: (time: number) => void
}

/** The meaning of one CLI's events. */
export interface Dialect {
  who: string
  exitCodes?: Readonly<Record<number, string>>
  /** It has reported a result but still works: background tasks continue, and their results come later. */
  readonly isBusy?: boolean
  /** The model of the answer, if it is known only at the end. */
  readonly model?: string | undefined
  /** Whether a person caused such an exit without a result, so that it is no failure. */
  isInterrupt?(exit: CliExit): boolean
  /** One line. Returns false if it is no event of the answer: the line becomes `cli-output`. */
  event(event: Record<string, unknown>): boolean
  /** Absent while the CLI is at work. */
  readonly result: CliResult | undefined
  rest(): CliRest
  readonly text: string
  readonly prompt?: string | undefined
}

interface Session {
  sessionId?: string | undefined
  model?: string | undefined
  providerMetadata?: ProviderMetadata
}

/** The output of a dialect. */
export interface TranscriptOutput {
  /** Begins the output. False if it has begun: the line is nothing new. */
  session(session: Session): boolean
  part(part: SourcePart): void
  /** The session that begins if something is said before `session`. */
  hint(sessionId: unknown): void
  /** The line is of another format: nothing more can be read. */
  refuse(error: ErrorValue): void
  readonly model: string
}

export type CreateDialect = (said: TranscriptOutput, options: DialectOptions) => Dialect

const defaultMaxLineLength = 64 * 1024 * 1024
/** Output before the session is held back so that `session-info` is first, up to this length. */
const mostHeld = 64 * 1024
/** Where the parts stand for the normaliser: it has one source only. */
const path = 'cli/1'

export function createTranscript(
  cli: CliName,
  create: CreateDialect,
  { onPart, onTime, maxLineLength, model, usedBefore }: CliReaderOptions,
): CliReader {
  const open = createOpenItems()
  const callIds = createKnownCalls()
  let ids = 0
  let hasBegun = false
  let refusal: ErrorValue | undefined
  let hint: string | undefined
  let session: Session = {}
  let held: SourcePart[] = []
  let heldLength = 0
  let outcome: CliOutcome | undefined
  const normaliser = createNormaliser({ path, emit, newId: () => `b${++ids}`, open, callIds, isTranscript: true })
  const said: TranscriptOutput = {
    part,
    session: begin,
    hint(id) {
      if (typeof id === 'string') hint ??= id
    },
    refuse(error) {
      refusal ??= error
    },
    get model() {
      return session.model ?? model ?? 'unknown'
    },
  }
  const dialect = create(said, omitUndefined({ usedBefore }))
  const limit = maxLineLength ?? defaultMaxLineLength
  const lines = createLineReader({ maxLength: limit, onLine: line, onTooLong: tooLong })

  function emit(_: string, given: Part): void {
    // A normaliser emits its input, and ends of it.
    const part = given as SourcePart
    if (!('delta' in part)) {
      const entry = { seq: 0, timestamp: 0, step: path, ...part } as Entry
      open.apply(entry)
      callIds.apply(entry)
    }
    onPart(part)
  }

  function begin(given: Session): boolean {
    const { sessionId = hint, model: named = model, providerMetadata } = given
    session = omitUndefined({ sessionId, model: named, ...omitUndefined(session) })
    if (hasBegun) return false
    hasBegun = true
    if (sessionId !== undefined) {
      emit(
        path,
        omitUndefined({ type: 'session-info' as const, sessionId, model: named, providerMetadata }) as SessionInfo,
      )
    }
    emit(path, { type: 'stream-start', warnings: [] })
    for (const each of held) emit(path, each)
    held = []
    return true
  }

  function part(given: SourcePart): void {
    if (!hasBegun) begin({})
    normaliser.part(given)
  }

  function output(raw: string): void {
    if (raw.trim() === '') return
    const part: SourcePart = { type: 'cli-output', stream: 'stdout', raw }
    if (hasBegun) {
      emit(path, part)
      return
    }
    held.push(part)
    heldLength += raw.length
    if (heldLength > mostHeld) begin({})
  }

  function line(text: string): void {
    const event = refusal === undefined ? toEvent(text) : undefined
    if (event !== undefined && !hasBegun) refusal ??= notOf(cli, event)
    if (event === undefined || refusal !== undefined) {
      output(text)
      return
    }
    if (onTime !== undefined) {
      const time = typeof event['timestamp'] === 'string' ? Date.parse(event['timestamp']) : Number.NaN
      if (time > 0) onTime(time)
    }
    if (!dialect.event(event)) output(text)
  }

  function tooLong(): void {
    const message = `${dialect.who} wrote a line of more than ${limit} characters. It is left out.`
    part({ type: 'error', error: { code: 'line-too-long', message } })
  }

  function end(exit?: CliExit): void {
    if (outcome !== undefined) return
    lines.end()
    if (!hasBegun) begin({})
    const { result, who, exitCodes } = dialect
    const isInterrupt = exit !== undefined && dialect.isInterrupt?.(exit) === true
    const ended = { who, result, rest: dialect.rest(), exit, isInterrupt, ...omitUndefined({ exitCodes }) }
    const judged = refusal === undefined ? judge(ended) : { outcome: 'failed' as const, error: refusal }
    const { text } = dialect
    const named = dialect.model ?? session.model
    outcome = toOutcome(judged, ended, { text, sessionId: session.sessionId ?? hint, model: named })
    normaliser.end()
    const why = judged.error ?? { code: 'ended', message: 'The output has ended.' }
    const lost = judged.outcome === 'interrupted' ? 'aborted' : 'unavailable'
    for (const each of open.closing({ now: 0, outcome: lost, error: why })) emit(path, each.part)
    if (judged.error !== undefined) emit(path, { type: 'error', error: judged.error })
    emit(path, toFinish(judged, ended))
  }

  return {
    feed: (bytes) => lines.feed(bytes),
    end,
    get isDone() {
      return refusal !== undefined || (dialect.result !== undefined && dialect.isBusy !== true)
    },
    outcome() {
      if (outcome === undefined)
        throw new MillraceError('not-ended', 'Call end() first: until then nothing has come of it.')
      return outcome
    },
    get prompt() {
      return dialect.prompt
    },
    get refusal() {
      return refusal
    },
  }
}

/**
 * The ids of a transcript's calls, as the normaliser asks for them. They are unique already, so none is renamed. Only the last ones are
 * remembered, to drop a result that comes twice: a transcript may be of any length.
 */
const most = 1000

function createKnownCalls(): CallIds {
  const called = new Set<string>()
  return {
    apply(entry: Entry) {
      if (entry.type !== 'tool-call') return
      called.add(entry.toolCallId)
      if (called.size <= most) return
      for (const first of called) {
        called.delete(first)
        break
      }
    },
    toLog: (_, part) => part,
    hasCall: (_, id) => called.has(id),
  }
}
