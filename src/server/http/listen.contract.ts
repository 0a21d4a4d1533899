/** Serves a test's handler with our listener. */
import { createServer, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Handler } from '../handler-context.ts'
import { createNodeListener } from './node-listener.ts'

export async function listen(handler: Handler, options: ServerOptions = {}) {
  const failures: unknown[] = []
  const server = createServer(
    options,
    createNodeListener(handler, (error) => void failures.push(error)),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, failures, server }
}
