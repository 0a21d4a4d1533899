/** The AG-UI runs of a run: a suspend ends one, and the request that continues the run begins another. */
import { clientThread } from '../../part/principal.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { EntryOf } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { messagesOf, type Message } from '../../part/message.ts'
import { errorText, type Sink } from '../wire.ts'
import type { AgUiEvent, AgUiEventOf, AgUiMessage, AgUiOut } from './ag-ui-event.ts'
import { toAgUiMessages } from './to-ag-ui-messages.ts'
import type { TokenUsage } from '@ag-ui/core'
import { addUsage, type Usage } from '../../part/usage.ts'

export type AgUiOutcome = NonNullable<AgUiEventOf<'RUN_FINISHED'>['outcome']>

export interface AgUiRun extends AgUiOut {
  /** Begins the first one. `messages` is called only if the client gets a snapshot. */
  start(entry: EntryOf<'run-start'>, messages: () => readonly AgUiMessage[]): void
  /** Begins another one, unless one is open. `reopen` sends the starts of what is open. */
  resume(entry: EntryOf<'resume'>, reopen: () => void, messages?: () => readonly AgUiMessage[]): void
  /** Begins another one, whose request has brought a message. The client has read nothing of what is open: `close` closes it unseen. */
  turn(entry: EntryOf<'message'>, close: () => void, messages?: () => readonly AgUiMessage[]): void
  addUsage(entry: EntryOf<'usage'>): void
  /** Call either only after everything in the run is closed. */
  finish(outcome: AgUiOutcome, result?: unknown): void
  fail(error: ErrorValue): void
}

/** `warnings` are sent at the start. */
export function createAgUiRun(sink: Sink<AgUiEvent>, warnings: readonly string[] = []): AgUiRun {
  return new AgUiRunState(sink, warnings)
}

/** A class, not closures: one for each open stream (decisions/0028). */
class AgUiRunState implements AgUiRun {
  timestamp = 0
  readonly #sink: Sink<AgUiEvent>
  readonly #warnings: readonly string[]
  readonly #usage = createAgUiUsage()
  #started: EntryOf<'run-start'> | undefined = undefined
  #runId = ''
  #isOpen = false
  /** Events that came while no run was open. They are sent behind the next RUN_STARTED, with its time: time does not go back. */
  #late: AgUiEvent[] | undefined = undefined

  constructor(sink: Sink<AgUiEvent>, warnings: readonly string[]) {
    this.#sink = sink
    this.#warnings = warnings
  }

  send(event: AgUiEvent): void {
    if (!this.#isOpen && event.type !== 'RUN_ERROR') {
      this.#late ??= []
      this.#late.push(event)
      return
    }
    const { type, ...fields } = event
    const timestamp = this.timestamp === 0 ? undefined : this.timestamp
    this.#sink.send(omitUndefined({ type, timestamp, ...fields }) as AgUiEvent)
  }

  #begin(
    { labels, input }: Pick<EntryOf<'resume'>, 'labels' | 'input'>,
    messages?: () => readonly AgUiMessage[],
    reopen?: () => void,
  ): void {
    if (this.#started === undefined) return
    const { runId: own } = this.#started
    const threadId = clientThread(this.#started)
    const runId = labels?.['runId'] ?? own
    this.#runId = runId
    this.#isOpen = true
    this.send({ type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0', metadata: { millrace: { runId: own } } })
    if (messages !== undefined && !this.#sink.muted) this.send({ type: 'MESSAGES_SNAPSHOT', messages: [...messages()] })
    const state = input?.['state']
    if (state !== undefined && state !== null) this.send({ type: 'STATE_SNAPSHOT', snapshot: state })
    for (const message of this.#warnings) this.send({ type: 'CUSTOM', name: 'warning', value: message })
    reopen?.()
    for (const event of this.#late ?? []) this.send(event)
    this.#late = undefined
  }

  start(entry: EntryOf<'run-start'>, messages: () => readonly AgUiMessage[]): void {
    this.#started = entry
    this.#begin(entry, messages)
  }

  resume(entry: EntryOf<'resume'>, reopen: () => void, messages?: () => readonly AgUiMessage[]): void {
    if (this.#isOpen) return
    // Earlier usage was in the end of the previous AG-UI run.
    this.#usage.clear()
    this.#begin(entry, messages, reopen)
  }

  turn({ labels }: EntryOf<'message'>, close: () => void, messages?: () => readonly AgUiMessage[]): void {
    this.#isOpen = false
    close()
    this.#late = undefined
    this.#usage.clear()
    this.#begin({ ...(labels !== undefined && { labels }) }, messages)
  }

  addUsage(entry: EntryOf<'usage'>): void {
    this.#usage.add(entry)
  }

  finish(outcome: AgUiOutcome, result?: unknown): void {
    if (this.#started === undefined || !this.#isOpen) return
    const threadId = clientThread(this.#started)
    this.send({ type: 'RUN_FINISHED', threadId, runId: this.#runId, result, outcome, usage: this.#usage.all() })
    this.#isOpen = false
  }

  fail(error: ErrorValue): void {
    this.send({ type: 'RUN_ERROR', message: errorText(error), code: error.code, usage: this.#usage.all() })
    this.#isOpen = false
  }
}

/** The conversation at the start of a run. */
export function conversation(history: readonly Message[], { input }: EntryOf<'run-start'>): readonly AgUiMessage[] {
  try {
    return toAgUiMessages([...history, ...messagesOf(input)])
  } catch {
    // A log may have an input that routes would refuse.
    return []
  }
}

/** The usage of a run in the shape of AG-UI: one item for each model. */
interface AgUiUsage {
  add(entry: EntryOf<'usage'>): void
  /** Resets the sums: a new AG-UI run begins. */
  clear(): void
  /** Undefined for none. */
  all(): TokenUsage[] | undefined
}

function createAgUiUsage(): AgUiUsage {
  let models = new Map<string, Usage>()
  return {
    add({ model, usage }) {
      models.set(model, addUsage(models.get(model), usage))
    },
    clear() {
      models = new Map()
    },
    all() {
      if (models.size === 0) return undefined
      return [...models].map(([name, usage]) => {
        const counts = omitUndefined({ ...usage, source: undefined })
        const colon = name.indexOf(':')
        if (colon < 1) return { model: name, ...counts }
        return {
          provider: name.slice(0, colon),
          model: name.slice(colon + 1),
          ...counts,
        }
      })
    },
  }
}
