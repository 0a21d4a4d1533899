/** The client library, loaded when a Redis store is opened: one connection, or those of a cluster. */
import { MillraceError } from '../../part/error.ts'
import { isRefusal } from './away.ts'
import { isTlsFault, otherProtocol, tlsOptions, type RedisAddress } from './url.ts'
import type { RedisCluster } from '@redis/client'

type Listener = (message: string, channel: string) => void

/** What the store needs of a connection, be it one or those of a cluster. */
export interface Client {
  /** `key`: which node of a cluster. Rejects at once while the connection is broken. */
  send(key: string, args: string[]): Promise<unknown>
  subscribe(channel: string, listener: Listener): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** The connection that takes the commands of a key now; undefined: there is none. */
  linkOf(key: string): unknown
  /** The connections that messages come on. */
  subscribers(): readonly { readonly isReady: boolean }[]
  /** Connects again: the name may stand for another server now. A cluster knows its nodes itself. */
  reconnect(): void
  close(): Promise<void>
}

/** Called when a connection has broken, right then, and when one is ready. */
export type Stirred = () => void

/** How long to try at the start, in ms. */
const firstTries = 5000
/** How long a server that has taken a connection may say nothing, in ms. */
const silence = 5000

async function load() {
  try {
    return await import('@redis/client')
  } catch (cause) {
    throw new MillraceError('missing-package', 'a Redis store needs a package: npm install @redis/client', { cause })
  }
}

/** Connects. Rejects with the client's own error if nobody answers within a few seconds. */
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
    // Who sends decides when to send again.
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
  // `createClient` makes a class with a method for each command of Redis, for each address anew: tens of ms, and we use none of them.
  const client = new RedisClient(options)
  // Large pages and many messages are not in each other's way.
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

/** How often to ask the nodes of a cluster at the start, in ms. */
const tryEvery = 100

/** The client wraps what its strategy returns. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && 'originalError' in error ? error.originalError : error
}

/** `isFinal`: whether it makes no sense to try once more, at the start. */
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
  // The client asks who is in the cluster now when a connection was tried twice, which takes long where nobody refuses it.
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

/** One that could not connect does not do so later. */
async function firstAnswer(create: () => Cluster, isFinal: (cause: unknown) => boolean): Promise<Cluster> {
  for (;;) {
    const cluster = create()
    // The client says only that no node can be asked.
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
 * Finds connections that have gone without a word, because a machine or a network has: everything that is sent disappears, and the system
 * says so after many minutes only. Each is asked every second, and one that owes its answers is ended.
 */
interface Link {
  readonly isReady: boolean
  sendCommand(args: string[]): Promise<unknown>
  destroy(): void
  connect(): Promise<unknown>
}

const askEvery = 1000
/** After so many questions a link that has not answered the first is ended. Counted, so that a process that was busy itself does not end all. */
const patience = 5

/**
 * Returns a function that ends it. `ended` is called after a link was ended; it connects again. `doubted`, every second, as long as a link
 * is broken or owes an answer that was asked for a second ago.
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
      // An error is an answer; or the link has broken, and everybody knows.
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

/** What was sent rejects. Only for a link that is ready: one that connects does so already. */
function reconnect(link: Link): void {
  if (!link.isReady) return
  link.destroy()
  link.connect().catch(() => undefined)
}
