/**
 * One instance of a fleet, as a program of its own: `node instance.ts <redis url> <options as JSON>`. Says its URL and its id as one
 * line of JSON. SIGTERM: hands its runs over, serves its readers to their end for a moment, and exits with 0.
 */
import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { flushCompileCache } from 'node:module'
import type { AddressInfo } from 'node:net'
import { createRuntime } from '../../src/project/create-runtime.ts'
import { createHandler } from '../../src/server/handler.ts'
import type { McpOptions } from '../../src/server/mcp/settings.ts'
import { createNodeListener } from '../../src/server/http/node-listener.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'

export interface InstanceOptions {
  baseURL: string
  effects: string
  agents: Record<string, string>
  /** Names of the tools that it has. */
  tools: string[]
  graceMs: number
  mcp?: McpOptions
}

const [, , url, json] = process.argv
const { baseURL, effects, agents, tools, graceMs, mcp = {} } = JSON.parse(json!) as InstanceOptions
const store = await redisStore(url!)
const parameters = { type: 'object', properties: { what: { type: 'string' } } } as const
const tool = (name: string) => ({
  parameters,
  execute({ what }: { what: string }, { runId }: { runId: string }) {
    appendFileSync(effects, `${runId} ${name} ${what}\n`)
    return `done ${what}`
  },
})
const runtime = createRuntime({
  agents,
  store,
  warn: console.error,
  tools: Object.fromEntries(tools.map((name) => [name, tool(name)])),
  models: { endpoints: [{ name: 'up', baseURL }] },
} as Parameters<typeof createRuntime>[0])
await runtime.recover()
const handler = createHandler({ runtime, authorize: () => true, mcp, edit: true })
const server = createServer(createNodeListener(handler, (error) => console.error(error)))
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  flushCompileCache()
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`)
})
process.once('SIGTERM', () => {
  const drained = () => new Promise<void>((done) => void server.close(() => done()))
  // A connection that becomes idle later would keep it open.
  setInterval(() => server.closeIdleConnections(), 20)
  void runtime.close(graceMs, drained).then(() => process.exit(0))
})
