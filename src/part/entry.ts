/**
 * A part as the log keeps it: flat JSON with an envelope.
 *
 * `seq` counts from 1 without gaps within a run; `timestamp` is epoch ms; `step` is the path of the step that spoke
 * (empty for the run itself). Fields that JSON cannot hold or that collide with the envelope change their form:
 * `response-metadata.timestamp` (a Date) → `responseTimestamp` (ms), bytes → base64, `error` → `{code, message}`.
 */
import { toErrorValue, type ErrorValue } from './error.ts'
import { recordable, toJson } from './json.ts'
import type { FileData, ModelPart, Part } from './part.ts'

export interface Envelope {
  seq: number
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

/** A part in the form that the log keeps, without its envelope. */
export type RecordedPart = Recorded<Part>
/** A part as it is recorded and sent: its envelope and its fields, flat. JSON-safe. */
export type Entry = Envelope & RecordedPart
/** The entries of one type: `EntryOf<'text-delta'>`. */
export type EntryOf<T extends Part['type']> = Extract<Entry, { type: T }>

/** What a producer yields → what the log keeps. Pure; deltas and other plain members are given back as they are. */
export function toRecorded(given: Part): RecordedPart {
  const part = withRecordable(given, madeAnew)
  switch (part.type) {
    // Fields that hold whatever a tool, a step or a client made.
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

/** An entry as it was read: older versions kept values that are nested too deep for whatever goes over them. */
export function toReadable(entry: Entry): Entry {
  return withRecordable(entry, nothing)
}

/** Fields that `toRecorded` gives another form: type → name. */
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

/** Copies only what changes. */
function withRecordable<P extends { type: Part['type'] }>(part: P, except: typeof madeAnew): P {
  let copy: Record<string, unknown> | undefined
  for (const key in part) {
    const value = part[key] as unknown
    if (typeof value !== 'object' && typeof value !== 'bigint') continue
    if (value === null || except[part.type] === key) continue
    const kept = recordable(value)
    if (kept !== value) (copy ??= { ...part } as Record<string, unknown>)[key] = kept
  }
  return (copy as P | undefined) ?? part
}

/** The reverse of {@link toRecorded} for what a model says: replaying a recording as a model, without its envelope. */
export function toModelPart(entry: Extract<RecordedPart, { type: ModelPart['type'] }> & Partial<Envelope>): ModelPart {
  const { seq: _, timestamp: __, step: ___, ...part } = entry
  if (part.type === 'tool-call' || part.type === 'tool-input-start') delete part.providerCallId
  if (part.type !== 'response-metadata') return part
  const { responseTimestamp, ...rest } = part
  return responseTimestamp === undefined ? rest : { ...rest, timestamp: new Date(responseTimestamp) }
}

/**
 * Joins neighbouring deltas of one block into one entry (it keeps the last one's `seq`), so that a replay sends a
 * finished block in a few frames. The content is the same; granularity is not.
 */
export function mergeDeltas(entries: readonly Entry[]): Entry[] {
  const merged: Entry[] = []
  for (let i = 0; i < entries.length;) {
    const first = entries[i++]!
    let last = first
    if (isDelta(first)) {
      const pieces = [first.delta]
      for (; i < entries.length; i++) {
        const next = entries[i]!
        if (!isDelta(next) || !sameBlock(next, first)) break
        pieces.push(next.delta)
        last = next
      }
      // Joined at once: a text that hangs together from thousands of pieces keeps a garbage collector busy.
      if (last !== first) last = { ...last, delta: pieces.join('') } as Entry
    }
    merged.push(last)
  }
  return merged
}

type Delta = EntryOf<'text-delta'> | EntryOf<'reasoning-delta'> | EntryOf<'tool-input-delta'>

export function isDelta(entry: Entry): entry is Delta {
  return entry.type === 'text-delta' || entry.type === 'reasoning-delta' || entry.type === 'tool-input-delta'
}

function sameBlock(a: Delta, b: Delta): boolean {
  return a.type === b.type && a.id === b.id && a.step === b.step && !a.providerMetadata && !b.providerMetadata
}

// In pieces: spreading a large array into fromCharCode overflows the stack.
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192))
  return btoa(binary)
}
