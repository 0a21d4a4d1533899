/** The connections to the nodes of a cluster. */
import type { RedisClusterType } from '@redis/client'
import type { Client, ClientEvents } from './client.ts'

type Cluster = Pick<RedisClusterType, 'on' | 'connect' | 'destroy' | 'sendCommand' | 'sSubscribe' | 'sUnsubscribe'>

/** How often to ask the nodes of a cluster at the start, in ms. */
const tryEvery = 100
/** Nodes of a cluster that are ready so long after one was not are so again, in ms. */
const recently = 60_000

export interface ClusterEvents extends ClientEvents {
  /** Whether it makes no sense to try once more, at the start. */
  isFinal(cause: unknown): boolean
}

/** The client wraps what its strategy returns. */
export function causeOf(error: unknown): unknown {
  return error instanceof Error && 'originalError' in error ? error.originalError : error
}

export async function connectCluster(create: () => Cluster, events: ClusterEvents): Promise<Client> {
  const cluster = await firstAnswer(create, events)
  return {
    send: (key, args) => cluster.sendCommand(key, false, args),
    subscribe: (channel, listener) => cluster.sSubscribe(channel, listener),
    unsubscribe: async (channel) => void (await cluster.sUnsubscribe(channel)),
    close: async () => cluster.destroy(),
  }
}

/** One that could not connect does not do so later. */
async function firstAnswer(create: () => Cluster, { up, down, isFinal }: ClusterEvents): Promise<Cluster> {
  for (;;) {
    const cluster = create()
    // A node is also ready when it is needed for the first time.
    let brokenAt = -Infinity
    const broken = () => void (brokenAt = performance.now())
    cluster.on('node-reconnecting', broken).on('node-error', broken)
    cluster.on('error', down).on('node-error', down).on('node-disconnect', up)
    cluster.on('node-ready', () => performance.now() - brokenAt < recently && up())
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
