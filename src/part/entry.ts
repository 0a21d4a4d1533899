/**
 * A part as it is stored in the log: flat JSON with an envelope.
 *
 * `seq` counts from 1 without gaps within a run, except where compaction has merged deltas: see `firstSeq`. `timestamp` is epoch ms;
 * `step` is the path of the step that emitted the part (empty for the run itself). Fields that JSON cannot represent, or that collide with the envelope, are converted:
 * `response-metadata.timestamp` (a Date) → `responseTimestamp` (ms), bytes → base64, `error` → `{code, message}`.
 */
import { toErrorValue, type ErrorValue } from './error.ts'
import { recordable, toJson } from './json.ts'
import type { FileData, ModelPart } from './model-part.ts'
import type { Part } from './part.ts'

export interface Envelope {
  seq: number
  /** Only of a delta of a compacted run: it was merged from deltas with `seq`s from this one on, and has the `seq` of the last. */
  firstSeq?: number
  timestamp: number
  step: string
}

type RecordedFile<P> = P extends unknown ? Omit<P, 'data'> & { data: Exclude<FileData, Uint8Array> } : never
type Recorded<P extends Part> = P extends { type: 'response-metadata' }
  ? Omit<P, 'timestamp'> & { responseTimestamp?: number }
  : P extends { type: 'error' }
    ? { type: 'error'; error: ErrorValue }
    : P extends { type: 'file' | 'reasoning-file' }
      ? RecordedFile<P>
      : P

/** A part in its stored form, without its envelope. */
export type RecordedPart = Recorded<Part>
/** A part as it is stored and sent: the fields of its envelope and its own, flat. JSON-safe. */
export type Entry = Envelope & RecordedPart
/** The entries of one type: `EntryOf<'text-delta'>`. */
export type EntryOf<T extends Part['type']> = Extract<Entry, { type: T }>

/** Converts a part to its stored form. Pure; returns deltas and other parts that need no conversion as they are. */
export function toRecorded(given: Part): RecordedPart {
  const part = withRecordable(given, madeAnew)
  switch (part.type) {
    // Fields with arbitrary values from tools, steps and clients.
    case 'tool-result':
      return { ...part, result: (toJson(part.result) ?? '') as typeof part.result }
    case 'run-start':
      return { ...part, input: toJson(part.input) as typeof part.input }
    case 'step-start':
      return part.items === undefined ? part : { ...part, items: part.items.map((item) => toJson(item) ?? null) }
    case 'step-finish':
      return part.result === undefined ? part : { ...part, result: toJson(part.result) }
    case 'run-end':
      return part.output === undefined ? part : { ...part, output: toJson(part.output) }
    case 'data':
      return { ...part, data: toJson(part.data) }
    case 'raw':
      return { ...part, rawValue: toJson(part.rawValue) }
    case 'response-metadata': {
      const { timestamp, ...rest } = part
      return timestamp === undefined ? rest : { ...rest, responseTimestamp: timestamp.getTime() }
    }
    case 'error':
      return { type: 'error', error: toErrorValue(part.error) }
    case 'file':
    case 'reasoning-file':
      return { ...part, data: part.data instanceof Uint8Array ? toBase64(part.data) : part.data }
    default:
      return part
  }
}

/** The entry with values that are safe to process: older versions stored some that are nested too deep. */
export function withSafeValues(entry: Entry): Entry {
  return withRecordable(entry, nothing)
}

/** Fields that `toRecorded` converts itself: type → name. */
const madeAnew: Readonly<Record<string, string | undefined>> = {
  'tool-result': 'result',
  'run-start': 'input',
  'step-start': 'items',
  'step-finish': 'result',
  'run-end': 'output',
  data: 'data',
  raw: 'rawValue',
  'response-metadata': 'timestamp',
  error: 'error',
  file: 'data',
  'reasoning-file': 'data',
}
const nothing: typeof madeAnew = {}

/** Copies only changed values. */
function withRecordable<P extends { type: Part['type'] }>(part: P, except: typeof madeAnew): P {
  let copy: Record<string, unknown> | undefined
  for (const key in part) {
    const value = part[key] as unknown
    if (typeof value !== 'object' && typeof value !== 'bigint') continue
    if (value === null || except[part.type] === key) continue
    const recorded = recordable(value)
    if (recorded !== value) (copy ??= { ...part } as Record<string, unknown>)[key] = recorded
  }
  return (copy as P | undefined) ?? part
}

/** The reverse of {@link toRecorded} for parts of a model, without the envelope: used to replay a recording as a model. */
export function toModelPart(entry: Extract<RecordedPart, { type: ModelPart['type'] }> & Partial<Envelope>): ModelPart {
  const { seq: _, timestamp: __, step: ___, firstSeq: ____, ...part } = entry
  if (part.type === 'tool-call' || part.type === 'tool-input-start') delete part.providerCallId
  if (part.type !== 'response-metadata') return part
  const { responseTimestamp, ...rest } = part
  return responseTimestamp === undefined ? rest : { ...rest, timestamp: new Date(responseTimestamp) }
}

/**
 * Merges adjacent deltas of one block into one entry, with the `seq` of the last, so that a replay sends a finished block in
 * a few frames. The content stays the same. `marked`: a merged one says in `firstSeq` where it begins, and the first delta behind the
 * start of its block stays as it is, so that its time is known.
 */
export function mergeDeltas(entries: readonly Entry[], { marked = false } = {}): Entry[] {
  const merged: Entry[] = []
  for (let i = 0; i < entries.length;) {
    const first = entries[i++]!
    let last = first
    if (isDelta(first) && !(marked && entries[i - 2]?.type === starts[first.type])) {
      const pieces = [first.delta]
      for (; i < entries.length; i++) {
        const next = entries[i]!
        if (!isDelta(next) || !sameBlock(next, first)) break
        pieces.push(next.delta)
        last = next
      }
      // One `join`: a string concatenated from thousands of pieces is expensive to garbage-collect.
      if (last !== first) last = { ...last, delta: pieces.join('') } as Entry
      if (marked && last !== first) last.firstSeq = first.firstSeq ?? first.seq
    }
    merged.push(last)
  }
  return merged
}

const starts = {
  'text-delta': 'text-start',
  'reasoning-delta': 'reasoning-start',
  'tool-input-delta': 'tool-input-start',
} as const

export type DeltaEntry = EntryOf<'text-delta'> | EntryOf<'reasoning-delta'> | EntryOf<'tool-input-delta'>

export function isDelta(entry: Entry): entry is DeltaEntry {
  return entry.type === 'text-delta' || entry.type === 'reasoning-delta' || entry.type === 'tool-input-delta'
}

/** Whether a part is a delta with an id, a text and nothing else, as nearly all are: it can be copied field by field. */
export function isBareDelta<P extends { type: Part['type'] }>(part: P): part is Bare<P> {
  if (part.type !== 'text-delta' && part.type !== 'reasoning-delta' && part.type !== 'tool-input-delta') return false
  let fields = 0
  for (const _ in part) fields++
  return fields === 3
}
type Bare<P> = Extract<P, { type: DeltaEntry['type'] }> & { providerMetadata?: undefined }
export type BareDelta = Bare<Part>

function sameBlock(a: DeltaEntry, b: DeltaEntry): boolean {
  return a.type === b.type && a.id === b.id && a.step === b.step && !a.providerMetadata && !b.providerMetadata
}

// In chunks: spreading a large array into fromCharCode overflows the stack.
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192))
  return btoa(binary)
}
