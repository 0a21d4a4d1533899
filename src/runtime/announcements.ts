/**
 * What this process knows of runs that are about to start, and of their turns in their threads. It saves others in this process
 * from waiting; what counts is the store.
 */
import type { Owned } from './claim-run.ts'
import type { Slots } from './slots.ts'

/** A start that was announced. Call one of its functions. */
export interface Announcement {
  /** `moved`: another process has started the run in the meantime. Rejects if the store fails before the first entry. */
  start(owned: Owned): Promise<'stored' | 'moved'>
  /** `error`: why there will be no such run. */
  refuse(error?: unknown): void
}

export interface Announcements {
  /** Undefined if the run is known here already. */
  announce(id: string): Announcement | undefined
  /** Settles when an announced run has its first entry; rejects if it will never have one. */
  beginning(id: string): Promise<void> | undefined
  /** Settles when all runs before it in its thread have ended. */
  ticketOf(id: string): Promise<void> | undefined
  keepTicket(id: string, ticket: Promise<void>): void
}

export function createAnnouncements(slots: Slots): Announcements {
  return {
    announce(id) {
      const run = slots.of(id)
      if (run.slot.state !== 'idle' || run.begins !== undefined) return undefined
      const begins = (run.begins = Promise.withResolvers<void>())
      // Not everyone waits for it.
      begins.promise.catch(() => undefined)
      slots.send(run, { type: 'announced' })
      const finish = (settle: () => void) => {
        run.begins = undefined
        settle()
        slots.release(run)
      }
      return {
        start(owned) {
          run.owned = owned
          slots.send(run, { type: 'started', epoch: owned.epoch })
          const { begun } = run.execution!
          begun.then(
            () => finish(begins.resolve),
            (error: unknown) => finish(() => begins.reject(error)),
          )
          return begun
        },
        refuse(error) {
          slots.send(run, { type: 'refused' })
          finish(() => (error === undefined ? begins.resolve() : begins.reject(error)))
        },
      }
    },

    beginning: (id) => slots.get(id)?.begins?.promise,

    ticketOf: (id) => slots.get(id)?.ticket,

    keepTicket(id, ticket) {
      const run = slots.of(id)
      const clear = () => {
        if (run.ticket === kept) run.ticket = undefined
        slots.release(run)
      }
      const kept: Promise<void> = ticket.then(clear, clear)
      run.ticket = kept
    },
  }
}
