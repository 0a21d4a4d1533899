/**
 * Subscriptions: at most one per channel, for any number of listeners. Subscribing and unsubscribing take turns, because the client library
 * mishandles overlapping ones. While Redis is unavailable they wait.
 */
import { isTransientError } from './transient-error.ts'
import type { RedisConnection } from './connection.ts'

export interface Channels {
  /** Adds a listener. Resolves when messages are received. */
  open(channel: string, listener: (message: string) => void): Promise<void>
  /** Resolves when no more messages are received. */
  close(channel: string): Promise<void>
  end(): void
}

type ChannelListener = (message: string) => void

interface Channel {
  /** Empty: the subscription is not wanted. */
  listeners: Set<ChannelListener>
  isOpen: boolean
  turn: Promise<void>
}

export function createChannels(connection: RedisConnection): Channels {
  const channels = new Map<string, Channel>()
  let ended = false

  /** Subscribes or unsubscribes until the state is as wanted. */
  async function settle(name: string, channel: Channel): Promise<void> {
    while (!ended && channel.isOpen !== channel.listeners.size > 0) {
      try {
        if (channel.isOpen) await connection.unsubscribe(name)
        else await connection.subscribe(name, (message) => channel.listeners.forEach((listener) => listener(message)))
        channel.isOpen = !channel.isOpen
      } catch (error) {
        if (!isTransientError(error)) throw error
        await connection.again()
      }
    }
    if (channel.listeners.size === 0 && channels.get(name) === channel) channels.delete(name)
  }

  function turn(name: string, channel: Channel): Promise<void> {
    const next = channel.turn.then(() => settle(name, channel))
    channel.turn = next.catch(() => undefined)
    return next
  }

  return {
    open(name, listener) {
      let channel = channels.get(name)
      if (channel === undefined) {
        channels.set(name, (channel = { listeners: new Set(), isOpen: false, turn: Promise.resolve() }))
      }
      channel.listeners.add(listener)
      return turn(name, channel)
    },
    async close(name) {
      const channel = channels.get(name)
      if (channel === undefined) return
      channel.listeners.clear()
      await turn(name, channel).catch(() => undefined)
    },
    end() {
      ended = true
      channels.clear()
    },
  }
}
