/**
 * Millrace for the routes of this app: all agents in src/agents, one log. `next build` imports the routes, and `next dev`
 * imports them again after each change, so the runtime starts with the first request, once per process.
 */
import { readdir } from 'node:fs/promises'
import { after } from 'next/server'
import { createRuntime, loadYaml } from 'millrace'
import { sqliteStore } from 'millrace/record'
import { createHandler, type Handler, type HandlerOptions } from 'millrace/server'

const key = Symbol.for('my-app.millrace')
const shared = globalThis as { [key]?: Promise<Handler> }

export async function handle(request: Request): Promise<Response> {
  shared[key] ??= start().catch((error: unknown) => {
    delete shared[key] // retry with the next request
    throw error
  })
  return (await shared[key])(request)
}

async function start(): Promise<Handler> {
  const agents: Record<string, string> = {}
  for (const file of await readdir('src/agents')) {
    if (file.endsWith('.yaml')) agents[file.slice(0, -'.yaml'.length)] = (await loadYaml(`src/agents/${file}`)).text
  }
  // Without a disk (serverless platforms), leave out `store`: runs are then kept in memory.
  const runtime = createRuntime({ agents, store: sqliteStore('.millrace/millrace.db') })
  return createHandler({ runtime, waitUntil: after, ...(session && { authenticate: session }) })
}

/**
 * Who makes a request, by the sessions of this app: `async (request) => ({ id: (await auth(request)).userId })`, or null for nobody. Each user then has
 * their own threads and runs. Without it the routes that show any are closed.
 */
const session: HandlerOptions['authenticate'] = undefined
