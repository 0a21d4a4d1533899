/**
 * Compares two recordings. Both logs are read side by side, once: memory holds one batch of each, the text that one is ahead, and
 * what the runs come to.
 * Ids, times and durations of two runs always differ, so they are not compared: docs/replay.md defines equality.
 */
import { isDelta, type Entry } from '../../part/entry.ts'
import type { Recording } from '../../part/recording.ts'
import { createDigest, type Digest, type RunDigest } from './digest.ts'

/** The first place at which two runs differ. An absent entry: this run has ended there. */
export interface Divergence {
  a?: Entry
  b?: Entry
  /** The fields that differ; none if one run has ended. */
  fields: string[]
}

/** The comparison of two runs. */
export interface RunDiff {
  same: boolean
  divergence?: Divergence
  /** What the two were given that is not the same: the text of the agent, what the models were told and with which settings. */
  given: ('agent' | 'prompt')[]
  a: RunDigest
  b: RunDigest
}

/** Compares two recordings, from a log (`recordedRun`) or from a file (`recordedEntries`). */
export async function diffRuns(a: Recording, b: Recording): Promise<RunDiff> {
  const [left, right] = [open(a), open(b)]
  let divergence: Divergence | undefined
  try {
    divergence = await findDivergence(left, right)
    for (const side of [left, right]) while ((await side.peek()) !== undefined) side.take()
  } finally {
    await Promise.all([left.close(), right.close()])
  }
  const [ofA, ofB] = [left.digest.read(), right.digest.read()]
  return {
    same: divergence === undefined,
    ...(divergence && { divergence }),
    given: [
      ...(ofA.pipeline === ofB.pipeline ? [] : (['agent'] as const)),
      ...(isSameStart(left.digest.told(), right.digest.told()) ? [] : (['prompt'] as const)),
    ],
    a: ofA,
    b: ofB,
  }
}

/** That one has called more models is what it did. */
function isSameStart(a: readonly string[], b: readonly string[]): boolean {
  return a.every((each, i) => i >= b.length || each === b[i])
}

interface Side {
  digest: Digest
  comparer: Comparer
  peek(): Promise<Entry | undefined>
  take(): void
  close(): Promise<void>
}

function open(recording: Recording): Side {
  const batches = recording.read()[Symbol.asyncIterator]()
  const digest = createDigest(recording.name)
  let batch: Entry[] = []
  let at = 0
  return {
    digest,
    comparer: createComparer(),
    async peek() {
      for (;;) {
        const entry = batch[at]
        if (entry !== undefined && !isBookkeeping(entry)) return entry
        if (entry !== undefined) {
          digest.apply(entry)
          at++
          continue
        }
        const { done, value } = await batches.next()
        if (done) return undefined
        batch = value
        at = 0
      }
    },
    take: () => digest.apply(batch[at++]!),
    close: async () => void (await batches.return?.()),
  }
}

/** That a run is a fork, stopped to wait and went on, and what became of a message that no model was told: what it did is the same without. */
function isBookkeeping(entry: Entry): boolean {
  switch (entry.type) {
    case 'suspend':
    case 'resume':
      return true
    case 'warning':
      return entry.code === 'forked'
    case 'message':
      return entry.outcome !== undefined
    default:
      return false
  }
}

/** Between two entries that are no deltas, each block must say the same on both sides, however it is cut. */
async function findDivergence(left: Side, right: Side): Promise<Divergence | undefined> {
  let texts = createTexts()
  /** By how many characters the left side is ahead. */
  let ahead = 0
  for (;;) {
    const [a, b] = [await left.peek(), await right.peek()]
    const isLeft = a !== undefined && isDelta(a) && (ahead <= 0 || b === undefined || !isDelta(b))
    const [name, side, entry] = isLeft ? (['a', left, a] as const) : (['b', right, b] as const)
    if (entry !== undefined && isDelta(entry)) {
      side.take()
      ahead += isLeft ? entry.delta.length : -entry.delta.length
      const found = texts.say(name, side.comparer.blockOf(entry), entry)
      if (found !== undefined) return differingText(left, right, found)
      continue
    }
    const pair = { ...(a && { a }), ...(b && { b }) }
    const rest = texts.rest()
    if (rest !== undefined) return differingText(left, right, { ...pair, ...rest })
    if (a === undefined && b === undefined) return undefined
    const found = differing(left, right, pair)
    if (a === undefined || b === undefined || found.fields.length > 0) return found
    left.take()
    right.take()
    texts = createTexts()
    ahead = 0
  }
}

/** Two equal deltas may stand at different places of a text. */
function differingText(left: Side, right: Side, pair: Pair): Divergence {
  const found = differing(left, right, pair)
  return pair.a && pair.b && found.fields.length === 0 ? { ...found, fields: ['delta'] } : found
}

function differing(left: Side, right: Side, { a, b }: Pair): Divergence {
  if (a === undefined || b === undefined) return { ...(a && { a }), ...(b && { b }), fields: [] }
  const [x, y] = [left.comparer.fields(a), right.comparer.fields(b)]
  return { a, b, fields: [...new Set([...x.keys(), ...y.keys()])].filter((key) => x.get(key) !== y.get(key)) }
}

/* What of an entry counts when two runs are compared. Ids count by their order: the third block of one is the third of the other. */

/** Fields that are others in every run: where it runs, when, how long, under which names, and how its texts are cut. */
const ignored: ReadonlySet<string> = new Set([
  'seq',
  'firstSeq',
  'timestamp',
  'runId',
  'threadId',
  'parentRunId',
  'previousRunId',
  'forkedFrom',
  'user',
  'by',
  'foreign',
  'labels',
  'wireOptions',
  'traceparent',
  'protocol',
  'duration',
  'deadline',
  'responseTimestamp',
  'sentAt',
  'delay',
  'providerMetadata',
])

/** Fields that name something within the run. */
const names: ReadonlySet<string> = new Set(['id', 'toolCallId', 'providerCallId', 'requestId'])

/** The fields of an entry that count, as JSON. */
type Comparable = ReadonlyMap<string, string>

interface Comparer {
  fields(entry: Entry): Comparable
  /** The block of a delta. */
  blockOf(entry: DeltaEntry): string
}

function createComparer(): Comparer {
  const numbers = new Map<string, number>()
  const numberOf = (id: string) => {
    let number = numbers.get(id)
    if (number === undefined) numbers.set(id, (number = numbers.size + 1))
    return number
  }
  return {
    fields(entry) {
      const found = new Map<string, string>()
      for (const [key, value] of Object.entries(entry)) {
        if (ignored.has(key)) continue
        found.set(key, textOf(key, value, numberOf))
      }
      return found
    },
    blockOf: ({ type, step, id }) => `${type}\n${step}\n${numberOf(id)}`,
  }
}

/** Ids are those of the entry, and those of the calls in the messages of a prompt. */
function textOf(key: string, value: unknown, numberOf: (id: string) => number): string {
  if (typeof value === 'string' && names.has(key)) return String(numberOf(value))
  if (key !== 'messages') return JSON.stringify(value) ?? ''
  return JSON.stringify(value, (name, inner: unknown) =>
    name === 'toolCallId' && typeof inner === 'string' ? numberOf(inner) : inner,
  )
}

/**
 * Compares texts that come from two sides, however they are cut into deltas: compaction merges them. The text that one side is ahead is kept, until
 * the other has said it, too.
 */
type DeltaEntry = Extract<Entry, { delta: string }>
type SideName = 'a' | 'b'

/** Two entries that differ. Absent: the other side has no such text. */
type Pair = Partial<Record<SideName, Entry>>

interface Texts {
  /** Returns the differences. */
  say(side: SideName, block: string, entry: DeltaEntry): Pair | undefined
  /** When both sides are complete here: the text of only one side. */
  rest(): Pair | undefined
}

/** A delta, and its part that the other side has not emitted. */
interface DeltaPiece {
  entry: DeltaEntry
  text: string
  /** The delta of the other side that has its beginning. */
  met?: DeltaEntry
}

interface Ahead {
  side: SideName
  pieces: DeltaPiece[]
}

function createTexts(): Texts {
  const blocks = new Map<string, Ahead>()
  return {
    say(side, block, entry) {
      const ahead = blocks.get(block)
      const own: DeltaPiece = { entry, text: entry.delta }
      if (ahead?.side === side) {
        ahead.pieces.push(own)
        return undefined
      }
      const pieces = ahead?.pieces ?? []
      while (own.text !== '' && pieces.length > 0) {
        const piece = pieces[0]!
        const length = Math.min(own.text.length, piece.text.length)
        if (own.text.slice(0, length) !== piece.text.slice(0, length)) return pair(side, entry, piece.entry)
        own.text = own.text.slice(length)
        own.met = piece.entry
        piece.text = piece.text.slice(length)
        piece.met = entry
        if (piece.text === '') pieces.shift()
      }
      if (own.text !== '') blocks.set(block, { side, pieces: [own] })
      else if (pieces.length === 0) blocks.delete(block)
      return undefined
    },
    rest() {
      let found: Pair | undefined
      for (const { side, pieces } of blocks.values()) {
        const piece = pieces.find(({ text }) => text !== '')
        if (piece === undefined) continue
        if (piece.met !== undefined) return pair(side, piece.entry, piece.met)
        found = { [side]: piece.entry, ...found }
      }
      return found
    },
  }
}

function pair(side: SideName, own: Entry, other: Entry): Pair {
  return side === 'a' ? { a: own, b: other } : { a: other, b: own }
}
