/** The AG-UI runs of a run: a suspend ends one, and the request that continues ours begins another. */
import { compact } from '../../part/compact.ts'
import type { EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { messagesOf, type Message } from '../../part/message.ts'
import { errorText } from '../error-text.ts'
import type { Sink } from '../wire.ts'
import type { AgUiEvent, AgUiEventOf, AgUiMessage, AgUiOut } from './ag-ui-event.ts'
import { createAgUiUsage } from './ag-ui-usage.ts'
import { toAgUiMessages } from './to-ag-ui-messages.ts'

export type AgUiOutcome = NonNullable<AgUiEventOf<'RUN_FINISHED'>['outcome']>

export interface AgUiRun extends AgUiOut {
  /** Begins the first one. `messages` is called if the client is sent any. */
  start(entry: EntryOf<'run-start'>, messages: () => readonly AgUiMessage[]): void
  /** Begins another one, unless one is open. */
  resume(entry: EntryOf<'resume'>, messages?: () => readonly AgUiMessage[]): void
  addUsage(entry: EntryOf<'usage'>): void
  /** Call both when everything in it is closed. */
  finish(outcome: AgUiOutcome, result?: unknown): void
  fail(error: ErrorValue): void
}

/** `warnings` are told at the beginning. */
export function createAgUiRun(sink: Sink<AgUiEvent>, warnings: readonly string[] = []): AgUiRun {
  const usage = createAgUiUsage()
  let started: EntryOf<'run-start'> | undefined
  let runId = ''
  let isOpen = false
  /** What came while none was open. */
  let late: AgUiEvent[] = []

  function begin(
    { labels, input }: Pick<EntryOf<'resume'>, 'labels' | 'input'>,
    messages?: () => readonly AgUiMessage[],
  ): void {
    if (started === undefined) return
    const { threadId, runId: own } = started
    runId = labels?.['runId'] ?? own
    isOpen = true
    run.send({ type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0', metadata: { millrace: { runId: own } } })
    if (messages !== undefined && !sink.muted) run.send({ type: 'MESSAGES_SNAPSHOT', messages: [...messages()] })
    const state = input?.['state']
    if (state !== undefined && state !== null) run.send({ type: 'STATE_SNAPSHOT', snapshot: state })
    for (const message of warnings) run.send({ type: 'CUSTOM', name: 'warning', value: message })
    for (const event of late) sink.send(event)
    late = []
  }

  const run: AgUiRun = {
    timestamp: 0,
    send({ type, ...fields }) {
      const timestamp = run.timestamp === 0 ? undefined : run.timestamp
      const event = compact({ type, timestamp, ...fields }) as AgUiEvent
      if (isOpen || type === 'RUN_ERROR') sink.send(event)
      else late.push(event)
    },
    start(entry, messages) {
      started = entry
      begin(entry, messages)
    },
    resume(entry, messages) {
      if (isOpen) return
      // The usage of the one before was in its end.
      usage.clear()
      begin(entry, messages)
    },
    addUsage: usage.add,
    finish(outcome, result) {
      if (started === undefined || !isOpen) return
      const { threadId } = started
      run.send({ type: 'RUN_FINISHED', threadId, runId, result, outcome, usage: usage.all() })
      isOpen = false
    },
    fail(error) {
      run.send({ type: 'RUN_ERROR', message: errorText(error), code: error.code, usage: usage.all() })
      isOpen = false
    },
  }
  return run
}

/** The conversation with which a run begins. */
export function conversation(history: readonly Message[], { input }: EntryOf<'run-start'>): readonly AgUiMessage[] {
  try {
    return toAgUiMessages([...history, ...messagesOf(input)])
  } catch {
    // A log may have an input that no route would take.
    return []
  }
}
