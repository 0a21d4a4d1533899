/** The handle of a run, in whichever process it executes. */
import type { RunResult } from './runtime.ts'
import { pause } from '../async/pause.ts'
import type { Entry } from '../part/entry.ts'
import type { Store } from '../part/log.ts'
import { awaitEntry } from './await-entry.ts'
import type { Run, Runtime } from './runtime.ts'
import type { Supervisor } from './supervisor.ts'
import { leavable } from '../async/leavable.ts'
import { noUsage } from '../part/usage.ts'
import { foldLog, readKept, readOutput } from '../fold/read-view.ts'
import { answerText } from '../fold/run-view.ts'

export interface HandleContext {
  store: Store
  supervisor: Pick<Supervisor, 'rested' | 'storeError'>
  runtime: Pick<Runtime, 'stop' | 'answer'>
}

export interface Handles {
  handle(id: string, threadId: string, joined?: boolean): Run
  /** Stops following runs, which may be in other processes. Resolves when their results are read. */
  close(): Promise<void>
}

/** Maximum ms for reading results before the store closes. */
const readingMs = 1000

export function createHandles({ store, supervisor, runtime }: HandleContext): Handles {
  const { log, runs } = store
  const closing = new AbortController()
  const { signal } = closing
  const awaited = new Set<Promise<RunResult>>()

  /** Resolves when the run has ended or is suspended, in any process, or when this can no longer be observed. */
  async function settled(id: string): Promise<void> {
    for (;;) {
      // If a reply or a stop came during the suspension, this waits for its effect.
      await supervisor.rested(id)
      if (supervisor.storeError(id) !== undefined || signal.aborted) return
      const row = await runs.get(id)
      if (row?.status !== 'running') return
      // Another process owns it.
      const isOver = ({ type }: { type: string }) => type === 'suspend' || type === 'run-end'
      if ((await awaitEntry(log, id, isOver, { after: row.lastSeq, signal })) === undefined) return
    }
  }

  function resultOf(id: string, stored: AsyncIterable<Entry[]>): Promise<RunResult> {
    // A failing store is a failed run.
    const read = () => readResult(store, id, stored, signal.aborted && supervisor.storeError(id) === undefined)
    const result = settled(id).then(read, read)
    awaited.add(result)
    void result.then(() => awaited.delete(result))
    return result
  }

  const shared: Handling = { log, signal, runtime, resultOf }

  return {
    handle: (id, threadId, joined = false) => new Handle(shared, { id, threadId, joined }),
    async close() {
      closing.abort()
      const over = new AbortController()
      await Promise.race([Promise.all(awaited), pause(readingMs, over.signal)])
      over.abort()
    },
  }
}

/** Shared by all handles. */
interface Handling {
  log: Store['log']
  /** Aborts when runs are no longer followed. */
  signal: AbortSignal
  runtime: HandleContext['runtime']
  resultOf(id: string, stored: AsyncIterable<Entry[]>): Promise<RunResult>
}

/** A class: a getter in a literal would give each run a hidden class of its own, which refers to it from the old generation. */
class Handle implements Run {
  readonly id: string
  readonly threadId: string
  readonly joined: boolean
  readonly parts: AsyncIterable<Entry>
  readonly stop: Run['stop']
  readonly answer: Run['answer']
  readonly #stored: AsyncIterable<Entry[]>
  readonly #resultOf: Handling['resultOf']
  #result: Promise<RunResult> | undefined

  constructor(
    { log, signal, runtime, resultOf }: Handling,
    { id, threadId, joined }: Pick<Run, 'id' | 'threadId' | 'joined'>,
  ) {
    this.id = id
    this.threadId = threadId
    this.joined = joined
    // Created now, because a store that drops old runs keeps those with a reader.
    this.parts = new Parts(log.read(id, { signal }))
    this.#stored = log.read(id)
    this.#resultOf = resultOf
    this.stop = (reason) => runtime.stop(id, reason)
    this.answer = (requestId, answer) => runtime.answer(id, requestId, answer, { protocol: 'library' })
  }

  get result(): Promise<RunResult> {
    return (this.#result ??= this.#resultOf(this.id, this.#stored))
  }
}

class Parts implements AsyncIterable<Entry> {
  readonly #live: AsyncIterable<Entry[]>

  constructor(live: AsyncIterable<Entry[]>) {
    this.#live = live
  }

  [Symbol.asyncIterator](): AsyncIterator<Entry> {
    return flatten(this.#live)
  }
}

/** Yields the entries of the batches one by one. A reader that leaves while it waits closes the log's cursor at once. */
function flatten(batches: AsyncIterable<Entry[]>): AsyncGenerator<Entry, void, void> {
  return leavable(async function* (left) {
    const cursor = batches[Symbol.asyncIterator]()
    left.addEventListener('abort', () => void cursor.return?.().catch(() => undefined))
    for await (const batch of { [Symbol.asyncIterator]: () => cursor }) for (const entry of batch) yield entry
  })
}

const failed = { code: 'store-failed', message: 'The run could not be recorded.' }
const unread = { code: 'store-closed', message: 'The runtime is closed: open another one to read how the run ended.' }
const lostRun = {
  code: 'run-moved',
  message: 'This process has shut down. The run goes on in another one, or when one is started: read its result there.',
}

/**
 * Reads the outcome of a run without owner here. Never rejects: a run that cannot be read has failed. `stored`: its log, which the holder can read
 * even if the store has dropped the run. `isClosing`: this process will not see its outcome.
 */
async function readResult(
  store: Store,
  run: string,
  stored: AsyncIterable<Entry[]>,
  isClosing: boolean,
): Promise<RunResult> {
  const view = await read(store, run, stored).catch(() => undefined)
  if (view === undefined || view.status === 'running') {
    const { text = '', usage = noUsage } = view ?? {}
    const known = { id: run, text, output: undefined, usage }
    if (!isClosing) return { ...known, outcome: 'failed', error: failed }
    return view === undefined || !store.durable
      ? { ...known, outcome: 'failed', error: unread }
      : { ...known, outcome: 'moved', error: lostRun }
  }
  const { status, text, output, usage, error } = view
  return { id: run, outcome: status, text, output, usage, ...(error === undefined ? undefined : { error }) }
}

async function read(store: Store, run: string, stored: AsyncIterable<Entry[]>) {
  const storedView = await readKept(store, run)
  if (storedView === undefined) return (await foldLog(stored))?.view()
  const output = await readOutput(store.log, run, storedView)
  return { ...storedView, text: answerText(storedView.messages), output }
}
