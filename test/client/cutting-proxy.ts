/** A way to a server that breaks: when it is told to, or by itself behind a number of bytes. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface CuttingProxy {
  url: string
  readonly connections: number
  /** Connections that broke by themselves. */
  readonly broken: number
  /** Breaks all that are open. */
  cut(): void
  close(): void
}

/** After how many bytes each new connection breaks, in which direction; undefined: never. */
export type BreakAfter = () => { down: number; up: number } | undefined

export async function cuttingProxy(target: string, breakAfter: BreakAfter = () => undefined): Promise<CuttingProxy> {
  const sockets = new Set<Socket>()
  let connections = 0
  let broken = 0
  const { hostname, port } = new URL(target)
  const proxy = createServer((near) => {
    connections++
    const far = connect(Number(port), hostname)
    const { down = Infinity, up = Infinity } = breakAfter() ?? {}
    let isBroken = false

    function pass(from: Socket, to: Socket, most: number): void {
      let left = most
      sockets.add(from)
      from.on('error', () => undefined)
      from.on('close', () => (sockets.delete(from), to.destroy()))
      from.on('end', () => to.end())
      from.on('data', (bytes: Buffer) => {
        if (isBroken) return
        if (bytes.length < left) {
          left -= bytes.length
          to.write(bytes)
          return
        }
        isBroken = true
        broken++
        // What was written before the break arrives.
        to.write(bytes.subarray(0, left), () => (near.destroy(), far.destroy()))
      })
    }
    pass(near, far, up)
    pass(far, near, down)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const cut = () => sockets.forEach((socket) => socket.destroy())
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    get connections() {
      return connections
    },
    get broken() {
      return broken
    },
    cut,
    close: () => (cut(), proxy.close()),
  }
}
