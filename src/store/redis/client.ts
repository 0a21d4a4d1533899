/** The client library, loaded when a Redis store is opened: one connection, or those of a cluster. */
import { MillraceError } from '../../part/error.ts'
import { isRefusal } from './transient-error.ts'
import { isTlsFault, otherProtocol, tlsOptions, type RedisAddress } from './url.ts'
import type { RedisCluster } from '@redis/client'

type PushListener = (message: string, channel: string) => void

/** The part of a connection that the store needs, for a single server or a cluster. */
export interface Client {
  /** `key`: which node of a cluster. Rejects at once while the connection is broken. */
  send(key: string, args: string[]): Promise<unknown>
  subscribe(channel: string, listener: PushListener): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** The current connection for the commands of a key; undefined if there is none. */
  linkOf(key: string): unknown
  /** The connections that receive messages. */
  subscribers(): readonly { readonly isReady: boolean }[]
  /** Reconnects: the name may refer to another server now. A cluster knows its nodes itself. */
  reconnect(): void
  close(): Promise<void>
}

/** Called at once when a connection breaks, and when one is ready. */
export type Stirred = () => void

/** Time limit for the first connection, in ms. */
const firstTries = 5000
/** Timeout of an accepted connection without a reply, in ms. */
const silence = 5000

async function load() {
  try {
    return await import('@redis/client')
  } catch (cause) {
    throw new MillraceError('missing-package', 'a Redis store needs a package: npm install @redis/client', { cause })
  }
}

/** Connects. Rejects with the client's own error if there is no reply within a few seconds. */
export async function connect(
  address: RedisAddress,
  shown: string,
  isCluster: boolean,
  stirred: Stirred,
): Promise<Client> {
  const giveUp = new AbortController()
  const { signal } = giveUp
  const connecting = connectClient(address, shown, isCluster, stirred, signal)
  const settled = new AbortController()
  try {
    return await Promise.race([connecting, otherProtocol(address, shown, settled.signal)])
  } catch (error) {
    giveUp.abort()
    connecting.catch(() => undefined)
    throw causeOf(error)
  } finally {
    settled.abort()
  }
}

async function connectClient(
  address: RedisAddress,
  shown: string,
  isCluster: boolean,
  stirred: Stirred,
  signal: AbortSignal,
): Promise<Client> {
  const tls = tlsOptions(address, shown)
  const { RedisClient, RedisCluster } = await load()
  const started = Date.now()
  let opened = false
  // A wrong password stays wrong.
  const isFinal = (cause: unknown) =>
    signal.aborted || isRefusal(cause) || isTlsFault(cause) || Date.now() - started > firstTries
  const reconnectStrategy = (retries: number, cause: Error) =>
    !opened && isFinal(cause) ? cause : Math.min(250, 25 * 2 ** retries) * (0.75 + Math.random() / 2)
  const socketOptions = { ...tls, signal, reconnectStrategy, connectTimeout: firstTries, socketTimeout: silence }
  const { hosts, database, username, password } = address
  const common = {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    // The sender decides about retries.
    disableOfflineQueue: true,
    maintNotifications: 'disabled' as const,
    commandOptions: { timeout: undefined },
  }
  if (isCluster) {
    const rootNodes = hosts.map((place) => ({ ...common, socket: { ...socketOptions, ...place } }))
    const create = () =>
      new RedisCluster({
        rootNodes,
        defaults: { ...common, socket: socketOptions },
        topologyRefreshOnReconnectionAttemptStrategy: 500,
      })
    const cluster = await connectCluster(create, stirred, isFinal)
    opened = true
    return cluster
  }
  const options = { ...common, database, socket: { ...socketOptions, ...hosts[0]! } }
  // `createClient` builds a class with a method for each command of Redis, for each address anew: tens of ms, and none is used here.
  const client = new RedisClient(options)
  // Separate, so that large pages do not delay messages.
  const subscriber = new RedisClient(options)
  for (const each of [client, subscriber]) each.on('error', stirred).on('ready', stirred)
  try {
    await Promise.all([client.connect(), subscriber.connect()])
  } catch (error) {
    for (const each of [client, subscriber]) if (each.isOpen) each.destroy()
    throw error
  }
  opened = true
  const unwatch = watchLinks(() => [client, subscriber], stirred)
  return {
    send: (_key, args) => client.sendCommand(args),
    subscribe: (channel, listener) => subscriber.sSubscribe(channel, listener),
    unsubscribe: async (channel) => void (await subscriber.sUnsubscribe(channel)),
    linkOf: () => (client.isReady ? client : undefined),
    subscribers: () => [subscriber],
    reconnect() {
      for (const each of [client, subscriber]) reconnect(each)
      stirred()
    },
    close: async () => {
      unwatch()
      for (const each of [client, subscriber]) if (each.isOpen) each.destroy()
    },
  }
}

/** The connections to the nodes of a cluster. */
type Cluster = Pick<
  InstanceType<typeof RedisCluster>,
  'on' | 'connect' | 'destroy' | 'sendCommand' | 'sSubscribe' | 'sUnsubscribe' | 'masters' | 'slots'
>

/** Retry interval for the nodes of a cluster at the start, in ms. */
const tryEvery = 100

/** The client wraps the error that its strategy returns. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && 'originalError' in error ? error.originalError : error
}

/** `isFinal`: whether a retry at the start is pointless. */
async function connectCluster(
  create: () => Cluster,
  stirred: Stirred,
  isFinal: (cause: unknown) => boolean,
): Promise<Client> {
  const cluster = await firstAnswer(create, isFinal)
  for (const event of ['error', 'node-error', 'node-ready', 'node-disconnect']) cluster.on(event, stirred)
  const subscribers = () => cluster.masters.flatMap(({ pubSub }) => (pubSub === undefined ? [] : [pubSub.client]))
  const links = () => [
    ...cluster.masters.flatMap(({ client }) => (client === undefined ? [] : [client])),
    ...subscribers(),
  ]
  // The client refreshes its list of nodes only after two failed connections, which takes long if none is refused.
  const unwatch = watchLinks(links, stirred, (link) => void link.emit('reconnecting'))
  return {
    send: (key, args) => cluster.sendCommand(key, false, args),
    subscribe: (channel, listener) => cluster.sSubscribe(channel, listener),
    unsubscribe: async (channel) => void (await cluster.sUnsubscribe(channel)),
    linkOf(key) {
      const client = cluster.slots[slotOf(key)]?.master.client
      return client?.isReady === true ? client : undefined
    },
    subscribers,
    reconnect: () => undefined,
    async close() {
      unwatch()
      cluster.destroy()
    },
  }
}

/** A client that could not connect does not retry by itself. */
async function firstAnswer(create: () => Cluster, isFinal: (cause: unknown) => boolean): Promise<Cluster> {
  for (;;) {
    const cluster = create()
    // The client reports only that no node can be reached.
    let fault: unknown
    cluster.on('error', (error) => (fault = error))
    try {
      await cluster.connect()
      return cluster
    } catch (error) {
      cluster.destroy()
      const cause = causeOf(fault ?? error)
      if (isFinal(cause)) throw cause
      await new Promise((resolve) => setTimeout(resolve, tryEvery))
    }
  }
}

/** The slot of a key in a cluster: CRC-16 (XModem) of its hash tag. */
function slotOf(key: string): number {
  const tag = /\{([^}]+)\}/u.exec(key)?.[1] ?? key
  let crc = 0
  for (const byte of new TextEncoder().encode(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff
  }
  return crc % 16_384
}

/**
 * Detects silently broken connections, after a failure of a machine or a network: everything that is sent is lost, and the system reports it only
 * after many minutes. Each connection gets a ping every second, and one without replies is closed.
 */
interface Link {
  readonly isReady: boolean
  sendCommand(args: string[]): Promise<unknown>
  destroy(): void
  connect(): Promise<unknown>
}

const askEvery = 1000
/**
 * Number of pings after which a link without a reply to the first is closed. Counted, so that a process that was busy itself does not close all
 * links.
 */
const patience = 5

/**
 * Returns a function that stops it. `ended` is called after a link was closed; it reconnects. `doubted` is called every second while a link is
 * broken or owes the reply to a ping for a second.
 */
function watchLinks<L extends Link>(
  links: () => readonly L[],
  ended: () => void,
  doubted: (link: L) => void = () => undefined,
): () => void {
  const owing = new Map<Link, number>()

  async function ask(link: Link): Promise<void> {
    owing.set(link, 0)
    try {
      await link.sendCommand(['PING'])
    } catch {
      // An error is a reply; or the link has broken, which is reported elsewhere.
    }
    owing.delete(link)
  }

  const timer = setInterval(() => {
    for (const link of links()) {
      const count = owing.get(link)
      if (!link.isReady || count !== undefined) doubted(link)
      if (!link.isReady) continue
      if (count === undefined) void ask(link)
      else if (count + 1 < patience) owing.set(link, count + 1)
      else {
        reconnect(link)
        ended()
      }
    }
  }, askEvery)
  timer.unref()
  return () => clearInterval(timer)
}

/** Pending commands reject. Only for a ready link: a connecting one reconnects by itself. */
function reconnect(link: Link): void {
  if (!link.isReady) return
  link.destroy()
  link.connect().catch(() => undefined)
}
