/** Millrace inside a Hono app, beside routes of its own. On Node: `serve(app)` of `@hono/node-server`. */
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
