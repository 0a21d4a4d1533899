/** A real server in a process of its own that tells what it holds: `fork` it with `--expose-gc` and send `measure`. */
import { serve } from '../../src/server/serve.ts'

export interface Measured {
  /** Bytes after a full collection. */
  heap: number
  rss: number
  /** Resources that keep the process alive: sockets, timers, files. */
  resources: number
  listeners: number
  /** ms of CPU that the process has used. */
  cpu: number
}

const [dir, endpoint] = process.argv.slice(2) as [string, string]
const { url } = await serve({
  dir,
  data: `${dir}/data`,
  env: {},
  port: 0,
  host: '127.0.0.1',
  endpoints: [{ name: 'up', baseURL: endpoint }],
  log: (line) => process.stderr.write(`${line}\n`),
})

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  void (async () => {
    for (let i = 0; i < 4; i++) {
      globalThis.gc!()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const { heapUsed, external, rss } = process.memoryUsage()
    const resources = process.getActiveResourcesInfo().length
    const listeners = process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
    process.send!({
      heap: heapUsed + external,
      rss,
      resources,
      listeners,
      cpu: (user + system) / 1000,
    } satisfies Measured)
  })()
})
process.send!({ url })
