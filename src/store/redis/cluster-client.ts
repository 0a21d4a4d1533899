/** The connections to the nodes of a cluster. */
import type { RedisCluster } from '@redis/client'
import type { Client, Stirred } from './client.ts'
import { slotOf } from './cluster-slot.ts'
import { watchLinks } from './silent-links.ts'

type Cluster = Pick<
  InstanceType<typeof RedisCluster>,
  'on' | 'connect' | 'destroy' | 'sendCommand' | 'sSubscribe' | 'sUnsubscribe' | 'masters' | 'slots'
>

/** How often to ask the nodes of a cluster at the start, in ms. */
const tryEvery = 100

/** The client wraps what its strategy returns. */
export function causeOf(error: unknown): unknown {
  return error instanceof Error && 'originalError' in error ? error.originalError : error
}

/** `isFinal`: whether it makes no sense to try once more, at the start. */
export async function connectCluster(
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
