/**
 * Messages that are sent into a running turn. They wait here from the moment the owner reads them in the run's inbox until a tool loop that answers
 * takes them between two model calls, or until the run ends. All state is in the inbox and in the log, so the next owner waits with the same ones.
 */
import type { InboxMessage, Log } from '../part/log.ts'
import type { EntryOf } from '../part/entry.ts'
import type { RunStart, SentMessage } from '../part/part.ts'
import {
  claimedIdIn,
  claimKey,
  messageIdIn,
  toSentMessage,
  type MessageClaim,
  type PostedMessage,
} from '../part/sent-message.ts'
import type { RunState } from './state.ts'
import type { Writer } from './writer.ts'

/** The messages of a run that begins because this one has ended. */
export interface NextRun {
  runId: string
  messages: readonly SentMessage[]
}

export interface Steering {
  /** Handles a message of the inbox. Returns whether it was about one. */
  receive(message: InboxMessage): boolean
  /** Whether a message waits for the running turn. */
  readonly waits: boolean
  /** Records the waiting messages for the tool loop at this path. Resolves with whether there were any. */
  deliver(loop: string): Promise<boolean>
  /**
   * Before the run ends, with this error: a stop drops the messages that wait; otherwise they begin the next runs of the thread. Those that cannot be
   * recorded stay in the inbox.
   */
  leave(error: string | undefined): Promise<void>
}

export interface SteeringOptions {
  log: Log
  run: string
  state: RunState
  signal: AbortSignal
  writer: Pick<Writer, 'emit' | 'stored'>
  newRunId(): string
  /** Starts a run of the thread after this one, once, however often it is called. */
  startNext(next: NextRun): Promise<void>
}

export function createSteering(options: SteeringOptions): Steering {
  return new RunSteering(options)
}

/** A class with lazy fields: one for each open stream, and nearly all of them get no message (decisions/0028). */
class RunSteering implements Steering {
  private readonly options: SteeringOptions
  private waiting: Map<string, PostedMessage> | undefined = undefined

  constructor(options: SteeringOptions) {
    this.options = options
  }

  receive({ key, message }: InboxMessage): boolean {
    const { state, writer } = this.options
    const id = messageIdIn(key)
    if (id !== undefined) {
      if (!state.messages.has(id)) (this.waiting ??= new Map()).set(id, message as PostedMessage)
      return true
    }
    const claimed = claimedIdIn(key)
    if (claimed === undefined) return false
    const posted = this.waiting?.get(claimed)
    if ((message as MessageClaim).to === 'sender' && posted !== undefined) {
      this.waiting!.delete(claimed)
      writer.emit('', { ...toSentMessage(claimed, posted), outcome: 'withdrawn' })
    }
    return true
  }

  get waits(): boolean {
    for (const { mode } of this.waiting?.values() ?? []) if (mode === 'steer') return true
    return false
  }

  async deliver(loop: string): Promise<boolean> {
    const { writer, signal } = this.options
    let isDelivered = false
    // Taken at once, because parallel branches may ask at the same time.
    const taken = this.take(({ mode }) => mode === 'steer')
    try {
      while (taken.length > 0) {
        const [id, posted] = taken[0]!
        const { to } = await this.claim(id, 'run')
        if (signal.aborted) throw signal.reason
        taken.shift()
        if (to === 'sender') writer.emit('', { ...toSentMessage(id, posted), outcome: 'withdrawn' })
        else {
          writer.emit(loop, toSentMessage(id, posted))
          isDelivered = true
        }
      }
    } finally {
      for (const [id, posted] of taken) this.waiting!.set(id, posted)
    }
    return isDelivered
  }

  async leave(error: string | undefined): Promise<void> {
    if (this.waiting === undefined && this.options.state.messages.size === 0) return
    // The next process starts the runs of messages that a shutdown leaves.
    if (error === 'interrupted' || error === 'store-failed') return
    if (error === 'aborted') this.drop()
    else await this.goOn().catch(() => undefined)
  }

  private drop(): void {
    for (const [id, posted] of this.take(() => true))
      this.options.writer.emit('', { ...toSentMessage(id, posted), outcome: 'dropped' })
  }

  /** A message for the running turn that came too late stands in the first run, with the others. Each message of the queue has a run of its own. */
  private async goOn(): Promise<void> {
    const { writer, newRunId } = this.options
    const first = newRunId()
    for (const [id, posted] of this.take(() => true).toSorted(([, a], [, b]) => rank(a) - rank(b))) {
      const { to } = await this.claim(id, 'next')
      const sent = toSentMessage(id, posted)
      if (to === 'sender') writer.emit('', { ...sent, outcome: 'withdrawn' })
      else writer.emit('', { ...sent, outcome: 'next', runId: posted.mode === 'steer' ? first : newRunId() })
    }
    // Stored first: the next owner of a run that crashes here starts them.
    await writer.stored()
    for (const next of nextRuns(this.options.state.start, this.options.state.messages.values())) {
      // One that is refused, because this run still has its place, is started once it has ended.
      await this.options.startNext(next).catch(() => undefined)
    }
  }

  private take(isTaken: (posted: PostedMessage) => boolean): [id: string, posted: PostedMessage][] {
    const taken = [...(this.waiting ?? [])].filter(([, posted]) => isTaken(posted))
    for (const [id] of taken) this.waiting!.delete(id)
    return taken
  }

  private async claim(id: string, to: MessageClaim['to']): Promise<MessageClaim> {
    const { message } = await this.options.log.post(this.options.run, claimKey(id), { to } satisfies MessageClaim)
    return message as MessageClaim
  }
}

/** The runs that begin with messages for this one. What a fork or an import has in common with another run is not its own. */
export function nextRuns(
  { forkedFrom, foreign = 0 }: Pick<RunStart, 'forkedFrom' | 'foreign'> = {},
  entries: Iterable<EntryOf<'message'>>,
): NextRun[] {
  const own = Math.max(forkedFrom?.seq ?? 0, foreign)
  const runs = new Map<string, SentMessage[]>()
  for (const entry of entries) {
    if (entry.outcome !== 'next' || entry.runId === undefined || entry.seq <= own) continue
    runs.set(entry.runId, [...(runs.get(entry.runId) ?? []), entry])
  }
  return [...runs].map(([runId, messages]) => ({ runId, messages }))
}

function rank({ mode }: PostedMessage): number {
  return mode === 'steer' ? 0 : 1
}

/** The messages in the inbox of a run without owner that its log does not have and nobody has taken back, in order. */
export async function waitingMessages(
  log: Log,
  run: string,
  isRecorded: (id: string) => boolean,
): Promise<{ id: string; posted: PostedMessage; claim?: MessageClaim }[]> {
  const found = new Map<string, { id: string; posted: PostedMessage; claim?: MessageClaim }>()
  for await (const { key, message } of log.inbox(run)) {
    const id = messageIdIn(key)
    if (id !== undefined && !isRecorded(id)) found.set(id, { id, posted: message as PostedMessage })
    const claimed = claimedIdIn(key)
    const waiting = claimed === undefined ? undefined : found.get(claimed)
    if (waiting === undefined) continue
    if ((message as MessageClaim).to === 'sender') found.delete(waiting.id)
    else waiting.claim = message as MessageClaim
  }
  return [...found.values()]
}
