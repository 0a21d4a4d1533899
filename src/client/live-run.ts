/** One run as a store, for any framework: its steps, the lines of its log and its answer, as far as they have come. */
import { createOutline, type Outline } from '../fold/outline.ts'
import { logRows, summaryOf, type LogRow } from '../fold/log-rows.ts'
import { buildTree, flattenTree, type StepNode } from '../fold/step-tree.ts'
import { isDelta, type Entry } from '../part/entry.ts'
import { toErrorValue, type ErrorValue } from '../part/error.ts'
import type { MessagePart } from './agent-message.ts'
import type { MillraceClient } from './client.ts'
import { oncePerFrame } from './frame.ts'
import { createMessageFold, type MessageFold } from './message-fold.ts'

/** One line of a log. Deltas of a block that follow each other are one line. */
export interface LogLine extends LogRow {
  /** At most 300 characters of the entry's text. */
  text: string
}

/** A run as far as it has come. Each state is a new object; its fields are computed when they are first read. */
export interface LiveRunState {
  /** `loading`: no entry has come yet. `failed`: the log cannot be read, see `error`. A run that has failed is `ended`. */
  readonly status: 'loading' | 'running' | 'suspended' | 'ended' | 'failed'
  /** All steps, each before those below it. */
  readonly steps: readonly StepNode[]
  readonly lines: readonly LogLine[]
  /** The parts of the answer. */
  readonly parts: readonly MessagePart[]
  /** Times of the first and the last entry, epoch ms. */
  readonly startedAt: number
  readonly lastAt: number
  /** Why the run has failed, or why its log cannot be read. */
  readonly error: ErrorValue | undefined
}

/** One run, followed while anybody is subscribed. */
export interface LiveRun {
  readonly runId: string
  /** `changed` is called at most once per frame. */
  subscribe(changed: () => void): () => void
  /** The same object until something changes. */
  getState(): LiveRunState
}

const longest = 300

/** Reads a run from its start and follows it, also one of another client. It only reads: it neither stops the run nor answers its requests. */
export function createLiveRun({ client, runId }: { client: MillraceClient; runId: string }): LiveRun {
  const listeners = new Set<() => void>()
  const outline = createOutline()
  const message = createMessageFold(runId)
  const texts = new Map<number, string>()
  /** Where the text of an open block goes: the line of its first delta. */
  const open = new Map<string, number>()
  let startedAt = 0
  let lastAt = 0
  let failure: ErrorValue | undefined
  let state: LiveRunState | undefined
  let reading: AbortController | undefined

  const publish = oncePerFrame(() => {
    for (const listener of listeners) listener()
  })

  function change(): void {
    state = undefined
    publish()
  }

  function apply(entry: Entry): void {
    if (entry.seq <= message.lastSeq) return
    if (startedAt === 0) startedAt = entry.timestamp
    lastAt = entry.timestamp
    outline.apply(entry)
    message.apply(entry)
    note(entry)
    change()
  }

  function note(entry: Entry): void {
    if (!isDelta(entry)) {
      if ('id' in entry) open.delete(`${entry.step}\n${String(entry.id)}`)
      texts.set(entry.seq, summaryOf(entry).slice(0, longest))
      return
    }
    const key = `${entry.step}\n${entry.id}`
    const line = open.get(key) ?? entry.firstSeq ?? entry.seq
    open.set(key, line)
    const before = texts.get(line) ?? ''
    if (before.length < longest) texts.set(line, (before + entry.delta).slice(0, longest))
  }

  async function read(leaving: AbortController): Promise<void> {
    try {
      for await (const entry of client.follow(runId, message.lastSeq, { signal: leaving.signal })) apply(entry)
    } catch (error) {
      if (leaving.signal.aborted) return
      failure = toErrorValue(error)
      change()
    }
  }

  return {
    runId,
    subscribe(changed) {
      listeners.add(changed)
      if (reading === undefined && message.status !== 'ended') {
        reading = new AbortController()
        failure = undefined
        state = undefined
        void read(reading)
      }
      return () => {
        listeners.delete(changed)
        if (listeners.size > 0) return
        reading?.abort()
        reading = undefined
      }
    },
    getState: () => (state ??= stateOf(outline, texts, { message, startedAt, lastAt, failure })),
  }
}

interface LiveState {
  message: MessageFold
  startedAt: number
  lastAt: number
  failure: ErrorValue | undefined
}

function stateOf(outline: Outline, texts: ReadonlyMap<number, string>, read: LiveState): LiveRunState {
  const { message, startedAt, lastAt, failure } = read
  const { status, end } = message
  const answer = message.messages().findLast(({ role }) => role === 'assistant')
  let steps: StepNode[] | undefined
  let lines: LogLine[] | undefined
  return {
    status: failure !== undefined ? 'failed' : status === 'queued' ? 'loading' : status,
    get steps() {
      return (steps ??= flattenTree(buildTree(outline.items()), () => false))
    },
    get lines() {
      return (lines ??= logRows(outline.items()).map((row) => ({ ...row, text: texts.get(row.seq) ?? row.note ?? '' })))
    },
    parts: answer?.parts ?? [],
    startedAt,
    lastAt,
    error: failure ?? end?.error,
  }
}
