/** A hand-written modern MCP server with tasks, in the process of the test, which says when a task asks or ends. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Task {
  taskId: string
  status: string
  pollIntervalMs?: number
  statusMessage?: string
  inputRequests?: Record<string, unknown>
  result?: unknown
  error?: unknown
}

export interface TaskServer {
  url: string
  /** Each request: its method, the header `Mcp-Name`, and what the client said that it can. */
  told: {
    method: string
    name: string | undefined
    capabilities: Record<string, unknown>
    params: Record<string, unknown>
  }[]
  tasks: Map<string, Task>
  /** Changes the tasks that there are, and those that come. */
  set(change: Partial<Task>): void
  count(method: string): number
  /** Requests of this method are answered with this status of HTTP, once each. */
  fail(method: string, status: number): void
  close(): Promise<void>
}

const tasksExtension = 'io.modelcontextprotocol/tasks'
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'

const slow = [{ name: 'slow', inputSchema: { type: 'object' } }]

/** `first`: how a new task begins. `tools`: others are answered at once, with their name. */
export async function startTaskServer(first: Partial<Task> = {}, tools: readonly object[] = slow): Promise<TaskServer> {
  const told: TaskServer['told'] = []
  const tasks = new Map<string, Task>()
  const failing: [method: string, status: number][] = []
  let begin = first

  function answer(method: string, params: Record<string, unknown>): { result: object } | { error: object } {
    switch (method) {
      case 'server/discover':
        return complete({
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {}, extensions: { [tasksExtension]: {} } },
          ttlMs: 0,
          cacheScope: 'private',
        })
      case 'tools/list':
        return complete({
          tools,
          ttlMs: 60_000,
          cacheScope: 'private',
        })
      case 'tools/call': {
        if (params['name'] !== 'slow')
          return complete({ content: [{ type: 'text', text: `ran ${String(params['name'])}` }] })
        const taskId = `task-of-the-server-${tasks.size + 1}-0123456789abcdef`
        const now = new Date().toISOString()
        const task = { taskId, status: 'working', createdAt: now, lastUpdatedAt: now, ttlMs: null, ...begin }
        tasks.set(taskId, task)
        const { inputRequests: _, result: __, ...shown } = task
        return { result: { resultType: 'task', ...shown, status: 'working' } }
      }
      default: {
        const task = tasks.get(String(params['taskId']))
        if (task === undefined) return { error: { code: -32602, message: 'There is no such task.' } }
        if (method === 'tasks/get') return complete(task)
        if (method === 'tasks/cancel') task.status = 'cancelled'
        else if (method === 'tasks/update') {
          for (const key of Object.keys(params['inputResponses'] as object)) delete task.inputRequests?.[key]
          if (Object.keys(task.inputRequests ?? {}).length === 0) task.status = 'working'
        }
        return complete({})
      }
    }
  }

  const server = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { id, method, params = {} } = JSON.parse(Buffer.concat(chunks).toString())
      const { _meta: meta, ...rest } = params as { _meta?: Record<string, Record<string, unknown>> }
      told.push({
        method,
        name: request.headers['mcp-name'] as string,
        capabilities: meta?.[capabilitiesKey] ?? {},
        params: rest,
      })
      const at = failing.findIndex(([failed]) => failed === method)
      if (at >= 0) return void response.writeHead(failing.splice(at, 1)[0]![1]).end()
      if (id === undefined) return void response.writeHead(202).end()
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer(method, rest) }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    told,
    tasks,
    set(change) {
      begin = { ...begin, ...change }
      for (const task of tasks.values()) Object.assign(task, structuredClone(change))
    },
    count: (method) => told.filter((each) => each.method === method).length,
    fail: (method, status) => void failing.push([method, status]),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

function complete(result: object) {
  return { result: { resultType: 'complete', ...result } }
}
