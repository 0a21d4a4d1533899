/** Stands between a store and Redis: loses answers, breaks connections, lets nothing through. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface RedisProxy {
  url: string
  /** Loses the next answer of a script, with its connection. */
  lose(): void
  /** How many answers were lost. */
  lost(): number
  /** Breaks all connections. */
  cut(): void
  /** Breaks all connections, and takes no new ones until `allow`. */
  refuse(): void
  allow(): void
  /** New connections go there. */
  move(port: number): void
  /**
   * Connections stay, but nothing comes through those that exist now, neither way: like a peer whose machine has gone. It takes no new
   * ones until `allow`.
   */
  freeze(): void
  close(): void
}

export async function startRedisProxy(first: number): Promise<RedisProxy> {
  let port = first
  let losing = false
  let lost = 0
  let refusing = false
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    if (refusing) return void client.destroy()
    const upstream = connect(port, '127.0.0.1')
    for (const each of [client, upstream]) {
      sockets.add(each)
      each
        .on('error', () => undefined)
        .on('close', () => {
          client.destroy()
          upstream.destroy()
          sockets.delete(each)
        })
    }
    client.pipe(upstream)
    upstream.on('data', (chunk) => {
      // The answer of a script is a list.
      if (!losing || chunk[0] !== 0x2a) return void client.write(chunk)
      losing = false
      lost++
      client.destroy()
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const cut = () => sockets.forEach((socket) => socket.destroy())
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lose: () => void (losing = true),
    lost: () => lost,
    cut,
    refuse() {
      refusing = true
      cut()
    },
    allow: () => void (refusing = false),
    move: (to) => void (port = to),
    freeze() {
      refusing = true
      sockets.forEach((socket) => socket.unpipe().pause())
    },
    close() {
      server.close()
      cut()
    },
  }
}
