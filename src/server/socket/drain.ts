/** Backpressure of one connection: whoever has sent something continues once the network has taken it. */
import type { Socket } from 'socket.io'

export interface Drain {
  /** Calls `next` once the connection can take more: at once if it can now. Never, once the connection is closed. */
  whenDrained(next: () => void): void
}

/**
 * A transport is not `writable` while the network has not taken what was sent; with polling, while no request waits for
 * an answer. `ready` says that it is again; `upgrade` that another transport has replaced it.
 */
export function createDrain(conn: Socket['conn']): Drain {
  let waiting: (() => void)[] = []

  function listen(): void {
    const { transport } = conn
    const look = () => {
      transport.off('ready', look)
      conn.off('upgrade', look)
      if (conn.readyState === 'closed') waiting = []
      else if (!conn.transport.writable) listen()
      else {
        const ready = waiting
        waiting = []
        for (const next of ready) next()
      }
    }
    transport.once('ready', look)
    conn.once('upgrade', look)
  }

  return {
    whenDrained(next) {
      if (conn.transport.writable) return next()
      if (waiting.push(next) === 1) listen()
    },
  }
}
