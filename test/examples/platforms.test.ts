/** The examples for other people's servers: their modules are imported and asked, as the platform would. */
import { readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { folder } from '../support/cli.ts'

const body = { agentId: 'assistant', messages: [{ role: 'user', content: 'What is 12*7?' }] }
const question = (path: string, more: object = {}) =>
  new Request(`http://app${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, ...more }),
  })
beforeAll(() => void vi.stubEnv('MILLRACE_DEMO_DELAY_MS', '0'))

/** What `next` would do: the project's folder is the working directory, and `register` is called first. */
async function inNextProject(): Promise<void> {
  const before = process.cwd()
  const project = folder()
  symlinkSync(resolve('examples/nextjs/src'), join(project, 'src'))
  process.chdir(project)
  onTestFinished(() => process.chdir(before))
  const { register } = await import('../../examples/nextjs/instrumentation.ts')
  register()
}

describe('examples: platforms', () => {
  test('Next.js: the route of the Beddel document streams its text; only its imports are ours', async () => {
    await inNextProject()
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => said.mockRestore())
    const { POST } = await import('../../examples/nextjs/app/api/beddel/chat/route.ts')
    const response = await POST(question('/api/beddel/chat') as never)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(await response.text()).toContain('84')
    await expect
      .poll(() => said.mock.calls.flat())
      .toEqual([expect.stringMatching(/^persistConversation: \d+ characters$/)])
    await expect(POST(question('/', { agentId: '../../../hono/x' }) as never)).rejects.toMatchObject({
      code: 'bad-path',
    })
  })

  test('its text is the document’s, but for the imports and the house style', () => {
    const code = readFileSync('examples/nextjs/app/api/beddel/chat/route.ts', 'utf8')
    const lines = code
      .split('\n')
      .map((line) => line.trim().replace(/;$/u, ''))
      .filter((line) => line !== '')
    expect(lines).toEqual([
      '// app/api/beddel/chat/route.ts',
      "import { loadYaml } from 'millrace'",
      "import { WorkflowExecutor } from 'millrace'",
      "import { NextRequest } from 'next/server'",
      'export async function POST(request: NextRequest) {',
      'const { agentId, messages } = await request.json()',
      '// Load agent YAML',
      'const yaml = await loadYaml(`src/agents/${agentId}.yaml`)',
      '// Create executor',
      'const executor = new WorkflowExecutor(yaml)',
      '// Execute pipeline',
      'const result = await executor.execute({ messages })',
      '// Result is either a streaming Response or JSON',
      'if (result instanceof Response) {',
      'return result',
      '}',
      'return Response.json(result)',
      '}',
    ])
  })

  test('Next.js: the catch-all route serves useChat; the log wants a key or authorize', async () => {
    await inNextProject()
    const { GET, POST } = await import('../../examples/nextjs/app/api/[...path]/route.ts')
    const frames = await (await POST(question('/api/chat'))).text()
    expect(frames).toMatch(/^data: \{"type":"start"[^]*"output":\{"result":84\}[^]*data: \[DONE\]\n\n$/u)
    expect((await GET(new Request('http://app/health'))).status).toBe(200)
    expect((await GET(new Request('http://app/api/runs'))).status).toBe(404)
  })

  test('Hono: beside routes of the app’s own', async () => {
    const { default: app } = await import('../../examples/hono/server.ts')
    expect(await (await app.request('/')).text()).toBe('My own page')
    expect(await (await app.fetch(question('/api/beddel/chat'))).text()).toContain('demo model')
    expect((await app.request('/api/nothing')).status).toBe(404)
  })

  test('Hono with sessions: each user has their own runs, over the app’s own cookie', async () => {
    const { default: app } = await import('../../examples/hono/sessions.ts')
    const signedIn = async (user: string) => {
      const response = await app.request(`/sign-in/${user}`, { method: 'POST' })
      return { cookie: response.headers.get('set-cookie')!.split(';')[0]!, origin: 'http://app', host: 'app' }
    }
    const [ann, ben] = [await signedIn('ann'), await signedIn('ben')]
    expect((await app.fetch(question('/api/beddel/chat'))).status).toBe(401)
    expect((await app.request('/api/runs', { headers: { cookie: 'user=ann.forged' } })).status).toBe(401)
    const asked = question('/api/beddel/chat')
    for (const [name, value] of Object.entries(ann)) asked.headers.set(name, value)
    const response = await app.fetch(asked)
    expect(await response.text()).toContain('demo model')
    const runsOf = async (headers: Record<string, string>) =>
      ((await (await app.request('/api/runs', { headers })).json()) as { runs: object[] }).runs
    expect(await runsOf(ann)).toMatchObject([{ owner: 'ann' }])
    expect(await runsOf(ben)).toEqual([])
    const run = response.headers.get('x-millrace-run-id')!
    expect((await app.request(`/api/runs/${run}`, { headers: ben })).status).toBe(404)
  })

  test('a `fetch` export, called with what the platform adds', async () => {
    const { default: server } = await import('../../examples/fetch/main.ts')
    const fetch = server.fetch as (request: Request, ...platform: unknown[]) => Promise<Response>
    expect(await (await fetch(question('/api/beddel/chat'), { KEY: 'x' }, {})).text()).toContain('demo model')
  })
})
