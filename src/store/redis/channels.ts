/**
 * Subscriptions: at most one to each channel, whatever the number of listeners. Subscribing and unsubscribing take turns, because
 * the client gets confused by one that begins before the other has ended. While Redis is away they wait.
 */
import { isAway } from './away.ts'
import type { Connection } from './connection.ts'

export interface Channels {
  /** Resolves when messages come. */
  open(channel: string, listener: (message: string) => void): Promise<void>
  /** Resolves when no messages come any more. */
  close(channel: string): Promise<void>
  end(): void
}

interface Channel {
  /** What is wanted; absent: nothing. */
  listener: ((message: string) => void) | undefined
  isOpen: boolean
  turn: Promise<void>
}

export function createChannels(connection: Connection): Channels {
  const channels = new Map<string, Channel>()
  let ended = false

  /** Makes what is so what is wanted. */
  async function settle(name: string, channel: Channel): Promise<void> {
    while (!ended && channel.isOpen !== (channel.listener !== undefined)) {
      try {
        if (channel.isOpen) await connection.unsubscribe(name)
        else await connection.subscribe(name, (message) => channel.listener?.(message))
        channel.isOpen = !channel.isOpen
      } catch (error) {
        if (!isAway(error)) throw error
        await connection.again()
      }
    }
    if (channel.listener === undefined && channels.get(name) === channel) channels.delete(name)
  }

  function change(name: string, listener: Channel['listener']): Promise<void> {
    let channel = channels.get(name)
    if (channel === undefined) {
      if (listener === undefined) return Promise.resolve()
      channels.set(name, (channel = { listener, isOpen: false, turn: Promise.resolve() }))
    }
    channel.listener = listener
    const next = channel.turn.then(() => settle(name, channel))
    channel.turn = next.catch(() => undefined)
    return next
  }

  return {
    open: (name, listener) => change(name, listener),
    close: (name) => change(name, undefined).catch(() => undefined),
    end() {
      ended = true
      channels.clear()
    },
  }
}
