/** Millrace in a Hono app with its own routes. On Node, serve it with `serve(app)` from `@hono/node-server`. */
import { Hono } from 'hono'
import { createRuntime } from 'millrace'
import { createHandler } from 'millrace/server'

const runtime = createRuntime({
  agents: { assistant: 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]' },
})
const millrace = createHandler({ runtime })

const app = new Hono()
app.get('/', (c) => c.text('My own page'))
app.all('/api/*', (c) => millrace(c.req.raw))

export default app
