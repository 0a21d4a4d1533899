/**
 * The disconnect policy of runs whose readers are in several processes. The process that attaches a reader posts its policy to the run, so that
 * every owner knows it: also a later owner, and after the readers' process was killed.
 */
import type { DisconnectPolicy } from '../pipeline/pipeline.ts'
import type { Clock } from '../engine/run-clock.ts'
import type { Log, Store } from '../part/log.ts'
import { clientProtocols, disconnected, startersPolicy } from './disconnect-policy.ts'
import type { Supervised } from './slots.ts'

export interface PresenceContext {
  store: Store
  clock: Clock
  shutdown: AbortSignal
  all(): Supervised[]
  stop(run: string, reason: string): Promise<void>
}

export interface Presence {
  /** A reader with this policy is about to read the run. */
  attached(run: Supervised, policy: DisconnectPolicy): void
}

/** The state of a run without readers. */
export interface Unread {
  /** ms of the steady clock. */
  since: number
  /** Undefined if it never had a reader. */
  policy: DisconnectPolicy | undefined
}

const key = 'disconnect-policy'
/** Polling interval of owners, in ms. */
const lookEvery = 300
/** Minimum time that a client has to reconnect, even with the policy `cancel`, in ms. */
const cutGrace = 700

export function createPresence({ store: { log, fleet }, clock, shutdown, all, stop }: PresenceContext): Presence {
  if (!fleet.shared) return { attached: () => undefined }

  /** Runs whose policy this process has posted. */
  const posted = new WeakSet<Supervised>()
  let looking = false

  async function checkReaders(run: Supervised): Promise<void> {
    const open = run.execution?.state.open
    if (open === undefined || open.answered || open.suspended || run.readers !== undefined) {
      run.unread = undefined
      return
    }
    if (await fleet.attended(run.id)) {
      run.unread = undefined
      return
    }
    run.unread ??= { since: clock.steady(), policy: (await postedPolicy(log, run.id)) ?? ownPolicy(run) }
    const { since, policy } = run.unread
    if (policy === undefined || policy === 'detach') return
    const patience = policy === 'cancel' ? cutGrace : policy.cancelAfter
    if (clock.steady() - since >= patience) await stop(run.id, disconnected)
  }

  async function lookAtAll(): Promise<void> {
    if (looking) return
    looking = true
    // A failing store is asked again.
    await Promise.allSettled(all().map(checkReaders))
    looking = false
  }

  const timer = setInterval(() => void lookAtAll(), lookEvery)
  timer.unref?.()
  shutdown.addEventListener('abort', () => clearInterval(timer), { once: true })

  return {
    attached(run, policy) {
      if (policy === 'detach' || posted.has(run)) return
      posted.add(run)
      log.post(run.id, key, policy).catch(() => posted.delete(run))
    },
  }
}

/** The instance that started the run may have died before it posted the policy of the first reader. */
function ownPolicy({ owned, execution }: Supervised): DisconnectPolicy | undefined {
  const start = execution?.state.start
  if (start === undefined || start.forkedFrom !== undefined || !clientProtocols.has(start.protocol)) return undefined
  // Nobody waits for it.
  if (start.wireOptions?.['background'] === true) return undefined
  return startersPolicy(owned?.work.type === 'execute' ? owned.work.pipeline : undefined, start.protocol, true)
}

async function postedPolicy(log: Log, run: string): Promise<DisconnectPolicy | undefined> {
  for await (const message of log.inbox(run)) if (message.key === key) return message.message as DisconnectPolicy
  return undefined
}
