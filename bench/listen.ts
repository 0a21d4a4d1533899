/** How every measured server reports that it is ready, and exits: cleanly, so that its CPU profile is written. */
import type { AddressInfo, Server } from 'node:net'

export function listen(server: Server): void {
  server.listen(0, '127.0.0.1', () => ready((server.address() as AddressInfo).port))
}

export function ready(port: number): void {
  process.once('SIGTERM', () => process.exit())
  process.stdout.write(`ready at http://127.0.0.1:${port}\n`)
}
