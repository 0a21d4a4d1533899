/**
 * Folds a run's entries into its outline: everything to draw, without any text. A delta costs a comparison and an addition; memory grows
 * with the number of steps, blocks and marks.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { isUnder } from '../part/path.ts'
import { kindOf } from '../part/step-kind.ts'
import { addUsage } from '../part/usage.ts'
import { sharedTo, startOf, textOf } from './run-view.ts'
import { copyItem, keyOf, mergeOutline, placeOf } from './merge-outline.ts'
import type { OutlineBlock, OutlineItem, OutlineMark, OutlineStep } from './outline-item.ts'
import { progressWords } from './progress-words.ts'
import { summaryWords } from './summary-words.ts'
import type { ErrorValue } from '../part/error.ts'

export interface Outline {
  /** Ignores entries that are already in it. */
  apply(entry: Entry): void
  /** Copies of the items that changed since the last call. `settled`: without blocks that still grow. */
  take(options?: { settled?: boolean }): OutlineItem[]
  items(): OutlineItem[]
  /** The number of items that changed since the last `take`. */
  readonly changes: number
  /** `seq` of the last applied entry; 0 if there is none. */
  readonly lastSeq: number
}

/** `items`: an outline to continue. */
export function createOutline(items: readonly OutlineItem[] = []): Outline {
  const all = mergeOutline(items).map(copyItem)
  const steps = new Map<string, OutlineStep>()
  const blocks = new Map<string, OutlineBlock>()
  /** The last mark of each step. */
  const marks = new Map<string, OutlineMark>()
  /** Steps whose cost is unknown. */
  const unpriced = new Set<string>()
  let changed = new Set<OutlineItem>()
  /** The block of the last delta: the next delta nearly always belongs to it, too. */
  let last: OutlineBlock | undefined
  let lastSeq = 0

  for (const item of all) {
    lastSeq = Math.max(lastSeq, item.k === 'mark' ? (item.to ?? item.seq) : item.to)
    if (item.k === 'step') open(item)
    else if (item.k === 'block') {
      if (item.end === undefined && item.superseded === undefined) blocks.set(blockKey(item), item)
    } else {
      marks.set(item.step, item)
      if (item.type === 'usage' && item.cost === undefined) unpriced.add(item.step)
    }
  }

  function add<T extends OutlineItem>(item: T): T {
    all.push(item)
    changed.add(item)
    return item
  }

  function begin(entry: EntryOf<'step-start'>): void {
    const { seq, step: path, stepType, attempt, timestamp: at, answer, toolName, toolCallId, agent, handoff } = entry
    const kind = kindOf(entry)
    const fixed = { k: 'step' as const, path, stepType, kind, attempt, from: seq, to: seq, at }
    open(add({ ...fixed, ...omitUndefined({ answer, toolName, toolCallId, agent, handoff }) }))
  }

  function open(step: OutlineStep): void {
    steps.set(step.path, step)
    unpriced.delete(step.path)
    marks.delete(step.path)
  }

  function finish({ step: path, seq, timestamp, usage, finishReason, error }: EntryOf<'step-finish'>): void {
    const step = steps.get(path)
    if (step === undefined || step.end !== undefined) return
    const brief = error && briefError(error)
    Object.assign(step, { to: seq, end: timestamp }, omitUndefined({ usage, finishReason, error: brief }))
    changed.add(step)
  }

  function beginBlock(entry: Entry & { id: string }, kind: OutlineBlock['kind'], toolName?: string): OutlineBlock {
    const { seq, step, timestamp: at, id } = entry
    const fixed = { k: 'block' as const, kind, id, step, from: seq, to: seq, at, n: 0, chars: 0 }
    const block = add({ ...fixed, ...omitUndefined({ toolName }) })
    blocks.set(blockKey(block), block)
    touch(step, seq)
    return block
  }

  function grow(entry: Entry & { type: string; id: string; delta: string; firstSeq?: number }): void {
    const { seq, firstSeq, step: path, id, timestamp, delta } = entry
    const kind = entry.type.slice(0, -'-delta'.length) as OutlineBlock['kind']
    let block = last
    if (block === undefined || block.id !== id || block.step !== path || block.kind !== kind) {
      block = blocks.get(blockKey({ kind, step: path, id })) ?? beginBlock(entry, kind)
      last = block
    }
    block.to = seq
    if (block.first === undefined) {
      block.first = timestamp
      if ((firstSeq ?? seq) !== block.from + 1) block.begun = firstSeq ?? seq
      const step = steps.get(path)
      if (step !== undefined && step.end === undefined && step.first === undefined) {
        step.first = timestamp
        changed.add(step)
      }
    }
    block.n += firstSeq === undefined ? 1 : seq - firstSeq + 1
    // Programs may append entries with fields of the wrong type.
    const chars = typeof delta === 'string' ? delta.length : 0
    block.chars += chars
    addChars(block, timestamp, chars, firstSeq !== undefined)
    changed.add(block)
  }

  function endBlock(entry: Entry & { id: string }, kind: OutlineBlock['kind']): void {
    const key = blockKey({ kind, step: entry.step, id: entry.id })
    const block = blocks.get(key)
    if (block === undefined) return
    block.to = entry.seq
    block.end = entry.timestamp
    blocks.delete(key)
    if (last === block) last = undefined
    changed.add(block)
    touch(entry.step, entry.seq)
  }

  /** Extends an open step to this entry. */
  function touch(path: string, seq: number): OutlineStep | undefined {
    const step = steps.get(path)
    if (step === undefined || step.end !== undefined) return undefined
    step.to = seq
    changed.add(step)
    return step
  }

  function mark(entry: Entry): void {
    const { type, seq, step: path, timestamp: at } = entry
    const bytes = JSON.stringify(entry).length
    const before = marks.get(path)
    const step = touch(path, seq)
    const progress = progressWords(entry)
    if (before?.type === type && isMany(entry) && before.failed === undefined) {
      before.to = seq
      before.n = (before.n ?? 1) + 1
      before.bytes += bytes
      if (progress !== undefined) before.progress = cut(progress)
      changed.add(before)
      return
    }
    const failed = hasFailed(entry) ? (true as const) : undefined
    const { usage, cost } = tellsUsage(entry) ? entry : {}
    const item = { k: 'mark' as const, type, seq, at, step: path, bytes }
    const details = {
      note: noteOf(entry),
      id: idOf(entry),
      failed,
      usage,
      cost,
      sent: sentOf(entry),
      shortened: shortenedIn(entry),
      fork: forkOf(entry),
      progress: progress === undefined ? undefined : cut(progress),
    }
    marks.set(path, add({ ...item, ...omitUndefined(details) }))
    if (step !== undefined) advance(step, entry)
  }

  function advance(step: OutlineStep, entry: Entry): void {
    if (entry.type === 'prompt') step.model = entry.model
    else if (entry.type === 'stream-start' && step.first === undefined) step.opened = entry.timestamp
    else if (tellsUsage(entry)) {
      step.model = entry.model
      step.usage = addUsage(step.usage, entry.usage)
      if (entry.cost === undefined) unpriced.add(step.path)
      if (unpriced.has(step.path)) delete step.cost
      else step.cost = (step.cost ?? 0) + entry.cost!
    }
  }

  /** Marks everything since the start of the attempt, at this path and below it, as superseded. */
  function reset({ step: path, seq, timestamp }: EntryOf<'step-reset'>): void {
    const from = steps.get(path)?.from ?? 0
    // From the newest item back, so that items before the attempt are not visited.
    for (let i = all.length - 1; i >= 0 && keyOf(all[i]!) >= from; i--) {
      const item = all[i]!
      if (item.superseded !== undefined || !isUnder(placeOf(item), path)) continue
      // It was said all the same: the next attempt is told it.
      if (item.k === 'mark' && item.type === 'message') continue
      item.superseded = seq
      if (item.k !== 'mark' && item.end === undefined) {
        item.to = seq
        item.end = timestamp
        if (item.k === 'block') blocks.delete(blockKey(item))
      }
      changed.add(item)
    }
    last = undefined
  }

  return {
    apply(entry) {
      if (entry.seq <= lastSeq) return
      lastSeq = entry.seq
      switch (entry.type) {
        case 'text-delta':
        case 'reasoning-delta':
        case 'tool-input-delta':
          return grow(entry)
        case 'step-start':
          return begin(entry)
        case 'step-finish':
          return finish(entry)
        case 'text-start':
          return void beginBlock(entry, 'text')
        case 'reasoning-start':
          return void beginBlock(entry, 'reasoning')
        case 'tool-input-start':
          return void beginBlock(entry, 'tool-input', entry.toolName)
        case 'text-end':
          return endBlock(entry, 'text')
        case 'reasoning-end':
          return endBlock(entry, 'reasoning')
        case 'tool-input-end':
          return endBlock(entry, 'tool-input')
        case 'step-reset':
          reset(entry)
          return mark(entry)
        default:
          return mark(entry)
      }
    },
    take({ settled = false } = {}) {
      const taken = changed
      changed = new Set()
      if (settled) for (const item of taken) if (item.k === 'block' && item.end === undefined) changed.add(item)
      return [...taken].filter((item) => !changed.has(item)).map(copyItem)
    },
    items: () => all.map(copyItem),
    get changes() {
      return changed.size
    },
    get lastSeq() {
      return lastSeq
    },
  }
}

function blockKey({ kind, step, id }: Pick<OutlineBlock, 'kind' | 'step' | 'id'>): string {
  return `${kind}\n${step}\n${id}`
}

/** Whether entries of this kind may come as often as deltas: adjacent ones of a step become one mark. */
function isMany(entry: Entry): boolean {
  if (entry.type === 'tool-result') return entry.preliminary === true
  return entry.type === 'raw' || entry.type === 'cli-output' || entry.type === 'data'
}

function tellsUsage(entry: Entry): entry is EntryOf<'usage'> {
  const { usage } = entry as { usage?: unknown }
  return entry.type === 'usage' && typeof usage === 'object' && usage !== null
}

function sentOf(entry: Entry): OutlineMark['sent'] {
  if (entry.type !== 'message') return undefined
  const { sentAt: at, by, outcome } = entry
  return { at, ...omitUndefined({ by, outcome }) }
}

function shortenedIn(entry: Entry): string[] | undefined {
  if (entry.type !== 'prompt' && entry.type !== 'summarized') return undefined
  return Array.isArray(entry.shortened) && entry.shortened.length > 0 ? entry.shortened : undefined
}

function forkOf(entry: Entry): OutlineMark['fork'] {
  if (entry.type !== 'run-start' || entry.forkedFrom === undefined) return undefined
  return { seq: sharedTo(entry), at: startOf(entry) }
}

function idOf(entry: Entry): string | undefined {
  if (entry.type === 'request' || entry.type === 'response') return entry.requestId
  return entry.type === 'tool-call' || entry.type === 'tool-result' ? entry.toolCallId : undefined
}

/** Maximum length of a note in characters. */
const longest = 200

function cut(text: string): string {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text
}

/** Without fields that only the entry needs. */
function briefError({ code, message, status, step }: ErrorValue): ErrorValue {
  return {
    code,
    message: cut(String(message)),
    ...(status !== undefined && { status }),
    ...(step !== undefined && { step }),
  }
}

function noteOf(entry: Entry): string | undefined {
  try {
    const words: unknown = wordsOf(entry)
    return typeof words === 'string' && words !== '' ? cut(words) : undefined
  } catch {
    // Programs may append entries with fields of the wrong type.
    return undefined
  }
}

function wordsOf(entry: Entry): string | undefined {
  switch (entry.type) {
    case 'run-start':
    case 'resume':
      return entry.agent
    case 'run-end':
      return entry.error?.message ?? entry.outcome
    case 'answer-end':
      return entry.finishReason
    case 'finish':
      return entry.finishReason.unified
    case 'prompt':
    case 'usage':
    case 'session-info':
      return entry.model
    case 'response-metadata':
      return entry.modelId
    case 'tool-call':
    case 'tool-result':
      return entry.toolName
    case 'message':
      return textOf({ role: 'user', content: entry.content })
    case 'summarized':
      return summaryWords(entry)
    case 'request':
      return entry.toolName ?? entry.message
    case 'response':
      return entry.outcome === 'closed' ? entry.reason : entry.outcome
    case 'error':
    case 'retry':
      return entry.error.message
    case 'warning':
      return entry.message
    case 'cli-output':
      return entry.raw
    case 'data':
      return progressWords(entry) ?? entry.name
    case 'source':
      return entry.title ?? (entry.sourceType === 'url' ? entry.url : undefined)
    case 'file':
    case 'reasoning-file':
      return entry.mediaType
    case 'custom':
      return entry.kind
    default:
      return undefined
  }
}

/** Whether an entry reports a failure. */
function hasFailed(entry: Entry): boolean {
  if (entry.type === 'tool-result') return entry.isError === true
  return entry.type === 'error' || (entry.type === 'run-end' && entry.error !== undefined)
}

/** Maximum number of time slices that count a text's characters. Beyond it, their length doubles. */
const most = 64
/** The first length of a slice, in ms. */
const shortest = 16

/** Counts characters that arrived at a time. The times of merged deltas are unknown: their characters are spread evenly. */
function addChars(block: OutlineBlock, time: number, chars: number, isMerged: boolean): void {
  const rate = (block.rate ??= [])
  block.per ??= shortest
  // Clocks may be set back.
  const past = Math.max(0, time - block.first!)
  for (; past >= most * block.per; block.per *= 2) halve(rate)
  const to = Math.max(rate.length - 1, Math.floor(past / block.per))
  const from = Math.min(rate.length, to)
  while (rate.length <= to) rate.push(0)
  if (!isMerged) rate[to]! += chars
  else for (let i = from, left = chars; i <= to; i++) left -= put(rate, i, Math.round(left / (to - i + 1)))
}

function put(rate: number[], slice: number, chars: number): number {
  rate[slice]! += chars
  return chars
}

function halve(rate: number[]): void {
  for (let i = 0; i * 2 < rate.length; i++) rate[i] = rate[i * 2]! + (rate[i * 2 + 1] ?? 0)
  rate.length = Math.ceil(rate.length / 2)
}
