/**
 * A recorded run through a wire: the bytes that a client which reads the run from its start gets, in the recorded rhythm. What a crash
 * retracted is left out, as for any such client; only a wire that shows the log shows it. Nothing is kept but one batch of entries.
 */
import type { Entry, EntryOf } from '../../part/entry.ts'
import { MillraceError, type ErrorValue } from '../../part/error.ts'
import type { Store } from '../../part/log.ts'
import { recordedRun, type Recording } from '../../part/recording.ts'
import { createSuperseded, type Superseded } from '../../fold/superseded.ts'
import { builtinWires } from '../../wire/builtin-wires.ts'
import type { Encoder, Piece, Wire, WireContext } from '../../wire/wire.ts'
import { createPace, steadyClock, type ReplayClock } from './pace.ts'

/** The recording, the wire and the speed of a replay. */
export interface ReplayOptions<Out extends Piece = string, Options extends object = object> {
  /** Default: `parts`, the entries as NDJSON. */
  wire?: Wire<Options, Out>
  /** A built-in wire by its name: `text`, `ui`, `openai`, `ag-ui`, `parts`. */
  format?: string
  /** Options of the wire. */
  options?: Partial<Options>
  /** 1 is as recorded, 10 ten times as fast, `Infinity` at once. Default 1. No pause is longer than 5 s. */
  speed?: number
  /** The client has all entries before this `seq`. Default 1. */
  from?: number
  /** The last `seq` to send. Default: the last one that is recorded when the replay starts. */
  to?: number
  /** Ends the replay early. */
  signal?: AbortSignal
  /** Called before each entry that is sent. Nothing is sent until it resolves; false ends the replay. Replaces the rhythm. */
  step?: (entry: Entry) => Promise<boolean>
  /** The failure to end with if the entries are over and the wire has not ended. Default: it just stops. */
  unfinished?: ErrorValue
  /** The conversation before the run, for wires that show it. */
  history?: WireContext['history']
  /** Default: the system's. */
  clock?: ReplayClock
}

/** Throws `unknown-run`, or `bad-input` for a speed or position that makes no sense. */
export async function* replay<Out extends Piece = string, Options extends object = object>(
  store: Store,
  run: string,
  options: ReplayOptions<Out, Options> = {},
): AsyncGenerator<Out, void, void> {
  const row = await store.runs.get(run)
  if (row === undefined) throw new MillraceError('unknown-run', `There is no run ${run}.`, { status: 404 })
  checkReplay(options, row.lastSeq)
  // Entries recorded later are no part of it.
  yield* replayRecording(recordedRun(store.log, run), { ...options, to: options.to ?? row.lastSeq })
}

/** Throws `bad-input`. */
export function checkReplay({ speed = 1, from = 1, to }: ReplayOptions<Piece>, lastSeq: number): void {
  if (!(speed >= 0.1)) throw bad('speed', 'a number from 0.1 on, or max')
  const within = `between 1 and ${lastSeq}, the last entry`
  if (!Number.isSafeInteger(from) || from < 1 || from > lastSeq) throw bad('from', within)
  if (to === undefined) return
  if (!Number.isSafeInteger(to) || to < 1 || to > lastSeq) throw bad('to', within)
  if (to < from) throw bad('to', `at least ${from}, where the replay begins`)
}

/** Throws `compacted` if `from` or `to` cuts through merged deltas: their boundary is no longer known. */
export async function checkPlaces(
  recording: Recording,
  { from = 1, to = Infinity }: ReplayOptions<Piece>,
): Promise<void> {
  for (const after of [from - 1, to]) {
    if (after > 0 && after < Infinity) for await (const _ of recording.read({ after, limit: 1 })) break
  }
}

function bad(name: string, must: string): MillraceError {
  return new MillraceError('bad-input', `"${name}" must be ${must}.`)
}

/** Replays entries from anywhere. */
export async function* replayRecording<Out extends Piece = string, Options extends object = object>(
  recording: Recording,
  options: ReplayOptions<Out, Options>,
): AsyncGenerator<Out, void, void> {
  const { speed = 1, from = 1, to = Infinity, signal, step, unfinished, clock = steadyClock } = options
  const wire = wireOf(options)
  await checkPlaces(recording, options)
  const { superseded, resumedAt, start } = await lookAhead(recording, to)
  // As its client asked for it, unless somebody asks for something else.
  const asked = start?.protocol === wire.name ? (start.wireOptions as Partial<Options> | undefined) : undefined
  const encoder: Encoder<Out> = wire.createEncoder(
    { resumedAt, ...(options.history && { history: options.history }) },
    options.options ?? asked,
  )
  const pace = createPace(step === undefined ? speed : Infinity, clock)
  const isShown = (entry: Entry) => wire.showsLog === true || !superseded.has(entry)

  for await (const batch of recording.read({ before: to + 1 })) {
    for (const entry of batch) {
      if (signal?.aborted) return
      if (!isShown(entry)) continue
      if (entry.seq < from) {
        encoder.skip(entry)
        continue
      }
      pace.next(entry.timestamp)
      if (pace.left() > 0 || step !== undefined) {
        const piece = encoder.take()
        if (piece.length > 0) yield piece
        const left = pace.left()
        if (left > 0) await clock.wait(left, signal)
        if (signal?.aborted || (step !== undefined && !(await step(entry)))) return
      }
      encoder.write(entry)
    }
    const piece = encoder.take()
    if (piece.length > 0) yield piece
    if (encoder.state === 'broken') throw new MillraceError('incomplete', 'The recorded answer is incomplete.')
    if (encoder.state === 'complete') return
  }
  if (unfinished === undefined || signal?.aborted) return
  const piece = encoder.fail(unfinished)
  if (piece.length > 0) yield piece
  if ((encoder.state as string) === 'broken') throw new MillraceError(unfinished.code, unfinished.message)
}

function wireOf<Out extends Piece, Options extends object>({
  wire,
  format = 'parts',
}: ReplayOptions<Out, Options>): Wire<Options, Out> {
  const named = wire ?? (builtinWires.get(format) as Wire<Options, Out> | undefined)
  if (named !== undefined) return named
  throw bad('format', `one of ${[...builtinWires.keys()].join(', ')}`)
}

interface ReplayStart {
  superseded: Superseded
  resumedAt: number
  start: EntryOf<'run-start'> | undefined
}

/** The data of the entries that the first one depends on. Reads none of their texts. */
async function lookAhead(recording: Recording, to: number): Promise<ReplayStart> {
  const superseded = createSuperseded()
  let resumedAt = 0
  let start: EntryOf<'run-start'> | undefined
  for await (const batch of recording.read({
    before: to + 1,
    types: ['run-start', 'step-start', 'step-reset', 'resume', 'message'],
  })) {
    for (const entry of batch) {
      superseded.note(entry)
      if (entry.type === 'run-start') start = entry
      else if (entry.type === 'resume') resumedAt = entry.seq
      // Behind it: a replay is one stream, and shows the messages in it.
      else if (entry.type === 'message' && entry.turn === true) resumedAt = entry.seq + 0.5
    }
  }
  return { superseded, resumedAt, start }
}
