/** What the config file says of the server and its record, and that the command line comes before it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { serve, type ServeOptions } from '../../src/server/serve.ts'
import { folder, ran, serving } from '../support/cli.ts'
import { startUpstream } from '../support/upstream.ts'

const agent = (model = 'demo:assistant', tools = '') =>
  `workflow: [{ id: answer, type: llm, config: { model: "${model}", stream: true, tools: [${tools}] } }]\n`
const config = (value: object) => `export default ${JSON.stringify(value)}\n`

async function served(value: object, options: Partial<ServeOptions> = {}, model?: string, tools?: string) {
  const dir = folder({ 'a.yaml': agent(model, tools), 'millrace.config.mjs': config(value) })
  const server = await serve({ dir, env: {}, ...options })
  onTestFinished(() => server.close())
  return { ...server, dir }
}
const say = (url: string, headers: Record<string, string> = {}, content = 'Hi') =>
  fetch(`${url}/api/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ agentId: 'a', messages: [{ role: 'user', content }] }),
  })

describe('config of a server', () => {
  test('port, host and data come from the config; what the caller says wins', async () => {
    const data = join(folder(), 'from-config')
    const first = await served({ server: { port: 0, host: '::1' }, record: { data } })
    expect(first.url).toMatch(/^http:\/\/\[::1\]:\d+$/)
    expect((await fetch(`${first.url}/health`)).status).toBe(200)
    expect(existsSync(join(data, 'millrace.db'))).toBe(true)
    const other = join(folder(), 'said')
    const second = await served(
      { server: { port: Number(new URL(first.url).port), host: '::1' }, record: { data } },
      { port: 0, host: '127.0.0.1', data: other },
    )
    expect(second.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(existsSync(join(other, 'millrace.db'))).toBe(true)
  })

  test('the command takes them as well, and its flags win', async () => {
    const cwd = folder({
      'agents/a.yaml': agent(),
      'agents/millrace.config.mjs': config({ server: { port: 1, host: '127.0.0.2' }, record: { data: 'runs-here' } }),
    })
    const server = await serving(['--host', '127.0.0.1'], { cwd })
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:/)
    expect(existsSync(join(cwd, 'runs-here/server.json'))).toBe(true)
    expect(existsSync(join(cwd, '.millrace'))).toBe(false)
    server.kill('SIGTERM')
    expect(await server.exit).toBe(0)
    const { err } = await ran(['run', 'a', '-m', 'Hi'], { cwd })
    expect(err).toContain('run run_')
    const listed = await ran(['ps', '--data', 'runs-here', '--json'], { cwd })
    expect(JSON.parse(listed.out)).toMatchObject([{ agent: 'a', status: 'completed' }])
  })

  test('an address beyond this machine wants a key, whoever names it', async () => {
    await expect(served({ server: { port: 0, host: '0.0.0.0' }, record: { data: 'none' } })).rejects.toMatchObject({
      code: 'no-key',
    })
  })

  test('a bad config is one error with the file, the keys and the cure; nothing has begun', async () => {
    const cwd = folder({
      'agents/a.yaml': agent(),
      'agents/millrace.config.mjs': config({ server: { prot: 1 }, record: { logFiles: 'yes' } }),
    })
    for (const command of [['serve', '--port', '0'], ['check'], ['run', 'a', '-m', 'Hi']]) {
      const { code, err } = await ran(command, { cwd })
      expect([command[0], code]).toEqual([command[0], 2])
      expect(err).toMatch(
        /^millrace: \S+millrace\.config\.mjs:\d+ server\.prot is not a known setting \(did you mean "port"\?\)/,
      )
      expect(err).toContain('record.logFiles must be true or false, not the string "yes"')
    }
    expect(existsSync(join(cwd, '.millrace'))).toBe(false)
  })

  test('maxBodyBytes and keepAliveMs reach the routes', async () => {
    const upstream = await startUpstream((reply) => reply.accept())
    onTestFinished(() => upstream.close())
    const endpoints = [{ name: 'up', baseURL: upstream.baseURL }]
    const { url } = await served(
      { server: { port: 0, maxBodyBytes: 200, keepAliveMs: 20 }, record: { data: 'none' }, models: { endpoints } },
      {},
      'up:m',
    )
    expect((await say(url, {}, 'x'.repeat(200))).status).toBe(413)
    const reader = (await say(url)).body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!/^: /mu.test(text)) text += (await reader.read()).value ?? expect.fail(`the body ended: ${text}`)
    await reader.cancel()
  })

  test('graceMs: a run that ends in that time is not interrupted', async () => {
    for (const [graceMs, status] of [
      [10_000, 'completed'],
      [0, 'interrupted'],
    ] as const) {
      const upstream = await startUpstream((reply) => reply.say('Half'))
      const data = join(folder(), 'data')
      const endpoints = [{ name: 'up', baseURL: upstream.baseURL }]
      const { url, close } = await served(
        { server: { port: 0, graceMs }, record: { data }, models: { endpoints } },
        {},
        'up:m',
      )
      const response = await say(url)
      const run = response.headers.get('x-millrace-run-id')!
      const body = response.text()
      const closed = close()
      // The server takes nothing any more; the model speaks on.
      await expect.poll(() => fetch(`${url}/health`).catch(() => 'refused'), { interval: 5 }).toBe('refused')
      if (graceMs === 0) await closed
      upstream.requests[0]!.finish()
      await Promise.all([closed, body.catch(() => undefined)])
      await upstream.close()
      const again = await serve({
        dir: folder({ 'a.yaml': agent() }),
        data,
        env: {},
        port: 0,
      })
      onTestFinished(() => again.close())
      expect([graceMs, (await again.project.runtime.store.runs.get(run))?.status]).toEqual([graceMs, status])
    }
  })

  test('a page of an allowed origin may use the server from the browser; no other page may', async () => {
    const origin = 'https://app.example'
    for (const apiKey of [undefined, 'a-long-secret-key']) {
      const { url } = await served(
        { server: { port: 0, allowedOrigins: [origin] }, record: { data: 'none' } },
        { apiKey },
      )
      const preflight = (from: string) =>
        fetch(`${url}/api/chat`, {
          method: 'OPTIONS',
          headers: {
            origin: from,
            'access-control-request-method': 'POST',
            'access-control-request-headers': 'authorization, content-type',
          },
        })
      const asked = await preflight(origin)
      expect([asked.status, Object.fromEntries(asked.headers)]).toEqual([
        204,
        expect.objectContaining({
          'access-control-allow-origin': origin,
          'access-control-allow-methods': 'GET, POST',
          'access-control-allow-headers': 'authorization, content-type',
        }),
      ])
      expect((await preflight('https://evil.example')).headers.get('access-control-allow-origin')).toBeNull()
      // A preflight opens nothing: the request behind it is looked at as any other.
      const authorization: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
      if (apiKey !== undefined) expect((await say(url, { origin })).status).toBe(401)
      const answered = await say(url, { origin, ...authorization })
      expect(answered.status).toBe(200)
      expect(answered.headers.get('access-control-allow-origin')).toBe(origin)
      expect(answered.headers.get('access-control-expose-headers')).toContain('x-millrace-run-id')
      expect(answered.headers.get('vary')).toContain('origin')
      expect(await answered.text()).toContain('[DONE]')
      const foreign = await say(url, { origin: 'https://evil.example', ...authorization })
      expect(foreign.headers.get('access-control-allow-origin')).toBeNull()
      expect(foreign.status).toBe(apiKey === undefined ? 403 : 200)
      await foreign.body?.cancel()
    }
  })

  test('openai: what may be shown and how much of it; the environment wins over the config, and nonsense is told', async () => {
    const settings = { extensions: ['tools'], traceKey: 'told', streamToolOutputMaxChars: 3 }
    const ask = async (env: Record<string, string>) => {
      const data = 'none'
      const { url } = await served(
        { server: { port: 0, openai: settings }, record: { data } },
        { env },
        undefined,
        'calculator',
      )
      const body = { model: 'a', messages: [{ role: 'user', content: 'What is 120*7?' }], extensions: ['tools'] }
      const post = (more: object) =>
        fetch(`${url}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...body, ...more }),
        })
      expect(await (await post({ extensions: ['trace'] })).json()).toMatchObject({
        error: {
          param: 'extensions',
          message: expect.stringContaining('must not be trace: this server does not allow it'),
        },
      })
      return (await post({})).text()
    }
    const delay = { MILLRACE_DEMO_DELAY_MS: '0' }
    const cut = await ask(delay)
    expect(cut).toMatch(/"content":"\{\\"r… \[truncated: 3 of \d+ characters\]"/u)
    expect(await ask({ ...delay, STREAM_TOOL_OUTPUT_MAX_CHARS: '100000' })).not.toContain('truncated')
    for (const said of ['many', '-1', '1.5', '1e3', '99999999999999999999']) {
      const options = { env: { STREAM_TOOL_OUTPUT_MAX_CHARS: said } }
      await expect(served({ server: { port: 0 }, record: { data: 'none' } }, options)).rejects.toThrow(
        `STREAM_TOOL_OUTPUT_MAX_CHARS must be a whole number of characters, not "${said}".`,
      )
    }
    const wrong = { extensions: ['tool'], traceKey: 'choices', streamToolOutputMaxChars: -1, tracekey: 1 }
    await expect(served({ server: { openai: wrong } })).rejects.toThrow(
      new RegExp(
        [
          'server.openai.extensions\\[0\\] must be one of tools, trace, not the string "tool" \\(did you mean "tools"\\?\\)',
          'server.openai.traceKey must be a name that the protocol does not use itself, not the string "choices"',
          'server.openai.streamToolOutputMaxChars must be a whole number from 0',
          'server.openai.tracekey is not a known setting \\(did you mean "traceKey"\\?\\)',
        ].join('[^]*'),
        'u',
      ),
    )
  })

  test('page: false: no rooms, and `/` is one plain page without scripts', async () => {
    const html = { accept: 'text/html' }
    for (const page of [true, false]) {
      const dir = folder({ 'a.yaml': agent(), 'millrace.config.js': config({ server: { page } }) })
      const server = await serve({ dir, data: 'none', env: {}, port: 0 })
      onTestFinished(() => server.close())
      const home = await fetch(server.url, { headers: html })
      const rooms = await fetch(`${server.url}/runs`, { headers: html })
      expect([(await home.text()).includes('<script'), rooms.status]).toEqual(page ? [true, 200] : [false, 404])
    }
  })
})
