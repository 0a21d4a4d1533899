/** The module that the tests start in each runtime, with the address of their model server in it. Not imported. */
import { createRuntime } from 'millrace'
import { createHandler } from 'millrace/server'

const runtime = createRuntime({
  agents: { assistant: 'workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]' },
  models: { endpoints: [{ name: 'up', baseURL: 'BASE_URL' }] },
})
const handler = createHandler({ runtime, authorize: () => true, keepAliveMs: 100 })

/** What nothing holds any longer goes at once, and not some time. */
function collect(): Response {
  const { gc, Bun } = globalThis as { gc?: () => void; Bun?: { gc(force: boolean): void } }
  if (Bun !== undefined) Bun.gc(true)
  else gc?.()
  return new Response()
}

export default {
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  fetch(request: Request, env: unknown, context: undefined) {
    if (new URL(request.url).pathname === '/collect') return collect()
    return request.headers.has('x-without-context') ? handler(request) : handler(request, env, context)
  },
}
