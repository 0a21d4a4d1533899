/** An app with sessions of its own: each user has their own conversations, and nobody else sees them. */
import { Hono } from 'hono'
import { getSignedCookie, setSignedCookie } from 'hono/cookie'
import { createRuntime } from 'millrace'
import { createHandler } from 'millrace/server'

const secret = process.env['SESSION_SECRET'] ?? crypto.randomUUID()

const runtime = createRuntime({
  agents: { assistant: 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]' },
})

const sessions = new Hono()
  // Your own sign-in. After it, the browser has a signed cookie with the user's id.
  .post('/sign-in/:user', async (c) => {
    await setSignedCookie(c, 'user', c.req.param('user'), secret, { httpOnly: true, sameSite: 'Lax' })
    return c.body(null, 204)
  })
  .get('/me', async (c) => c.json({ id: (await getSignedCookie(c, secret, 'user')) || null }))

const millrace = createHandler({
  runtime,
  // Roles are user (the default), operator and admin. null is a 401.
  async authenticate({ headers }) {
    const cookie = headers.get('cookie') ?? ''
    const { id } = (await (await sessions.request('/me', { headers: { cookie } })).json()) as { id: string | null }
    return id === null ? null : { id }
  },
})

const app = new Hono()
app.route('/', sessions)
app.all('/api/*', (c) => millrace(c.req.raw))

export default app
