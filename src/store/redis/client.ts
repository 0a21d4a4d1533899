/** The client library, loaded when a Redis store is opened: one connection, or those of a cluster. */
import { MillraceError } from '../../part/error.ts'
import { isRefusal } from './away.ts'
import type { RedisAddress } from './url.ts'

type Listener = (message: string, channel: string) => void

/** What the store needs of a connection, be it one or those of a cluster. */
export interface Client {
  /** `key`: which node of a cluster. Rejects at once while the connection is broken. */
  send(key: string, args: string[]): Promise<unknown>
  subscribe(channel: string, listener: Listener): Promise<void>
  unsubscribe(channel: string): Promise<void>
  close(): Promise<void>
}

export interface ClientEvents {
  /** Connected again. */
  up(): void
  down(error: unknown): void
}

/** How long to try at the start, in ms. */
const firstTries = 5000
/** Nodes of a cluster that are ready so long after one was not are so again, in ms. */
const recently = 60_000
/** A connection on which nothing comes for so long, pings neither, is broken, in ms. */
const silence = 12_000

async function load() {
  try {
    return await import('@redis/client')
  } catch (cause) {
    throw new MillraceError('missing-package', 'a Redis store needs a package: npm install @redis/client', { cause })
  }
}

/** Connects. Rejects with the client's own error if nobody answers within a few seconds. */
export async function connect(address: RedisAddress, isCluster: boolean, events: ClientEvents): Promise<Client> {
  const { createClient, createCluster } = await load()
  const started = Date.now()
  let opened = false
  const reconnectStrategy = (retries: number, cause: Error) => {
    // A wrong password stays wrong.
    const isFinal = !opened && (isRefusal(cause) || Date.now() - started > firstTries)
    return isFinal ? cause : Math.min(250, 25 * 2 ** retries) * (0.75 + Math.random() / 2)
  }
  const socketOptions = { reconnectStrategy, connectTimeout: firstTries, socketTimeout: silence }
  const { hosts, tls, database, username, password } = address
  const common = {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    // Who sends decides when to send again.
    disableOfflineQueue: true,
    pingInterval: silence / 4,
    maintNotifications: 'disabled' as const,
    commandOptions: { timeout: undefined },
  }
  const socketOf = ({ host, port }: (typeof hosts)[number]) =>
    tls ? { ...socketOptions, host, port, tls: true as const } : { ...socketOptions, host, port }
  const up = () => void (opened && events.up())
  const down = (error: unknown) => void (opened && events.down(error))

  if (isCluster) {
    const cluster = createCluster({
      rootNodes: hosts.map((place) => ({ ...common, socket: socketOf(place) })),
      defaults: { ...common, socket: tls ? { ...socketOptions, tls: true } : socketOptions },
      topologyRefreshOnReconnectionAttemptStrategy: 500,
    })
    // A node is also ready when it is needed for the first time.
    let brokenAt = -Infinity
    const broken = () => void (brokenAt = performance.now())
    cluster.on('node-reconnecting', broken).on('node-error', broken)
    cluster.on('error', down).on('node-error', down).on('node-disconnect', up)
    cluster.on('node-ready', () => performance.now() - brokenAt < recently && up())
    await cluster.connect()
    opened = true
    return {
      send: (key, args) => cluster.sendCommand(key, false, args),
      subscribe: (channel, listener) => cluster.sSubscribe(channel, listener),
      unsubscribe: async (channel) => void (await cluster.sUnsubscribe(channel)),
      close: async () => cluster.destroy(),
    }
  }
  const options = { ...common, database, socket: socketOf(hosts[0]!) }
  const client = createClient(options)
  // Large pages and many messages are not in each other's way.
  const subscriber = createClient(options)
  for (const each of [client, subscriber]) each.on('error', down).on('ready', up)
  try {
    await Promise.all([client.connect(), subscriber.connect()])
  } catch (error) {
    for (const each of [client, subscriber]) if (each.isOpen) each.destroy()
    throw error
  }
  opened = true
  return {
    send: (_key, args) => client.sendCommand(args),
    subscribe: (channel, listener) => subscriber.sSubscribe(channel, listener),
    unsubscribe: async (channel) => void (await subscriber.sUnsubscribe(channel)),
    close: async () => {
      for (const each of [client, subscriber]) if (each.isOpen) each.destroy()
    },
  }
}
