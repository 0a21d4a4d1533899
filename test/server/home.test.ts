/** `GET /`: the page, the same as JSON, and what either shows to whom. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import { serve } from '../../src/server/serve.ts'
import { version } from '../../src/server/version.ts'
import { folder } from '../support/cli.ts'
import { agent, createEngine, type Engine } from '../support/engine.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

const html = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
const key = 'a-long-secret-key'
const about = (description: string) => `metadata: { name: "Named", description: ${JSON.stringify(description)} }`
const demo = (top = '') => agent('', top).replace('script:m', 'demo:assistant')

interface Home {
  name: string
  version: string
  agents?: { id: string; description?: string; curl: string }[]
  faults?: string[]
  openai?: { baseURL: string }
  agUi?: object
  message?: string
  links: string[]
}

async function served(files: Record<string, string>, options = {}) {
  const server = await serve({
    dir: folder(files),
    data: 'none',
    env: { MILLRACE_DEMO_DELAY_MS: '0' },
    port: 0,
    ...options,
  })
  onTestFinished(() => server.close())
  const json = async (headers = {}) =>
    (await (await fetch(server.url, { headers: { accept: 'application/json', ...headers } })).json()) as Home
  // Browsers, which name HTML, get the application instead.
  const page = async (headers = {}) => fetch(server.url, { headers: { accept: '*/*', ...headers } })
  return { url: server.url, json, page }
}

describe('home page', () => {
  test('name, version, the agents with a line that can be pasted, links that lead somewhere', async () => {
    const quoted = `it's`
    const { url, json, page } = await served({
      [`${quoted}.yaml`]: demo(about('Says <b>something</b> & more')),
      'bad.yaml': 'workflow: 7\n',
    })
    const told = await json()
    expect(told).toMatchObject({
      name: 'Millrace',
      version,
      agents: [{ id: quoted, description: 'Says <b>something</b> & more' }],
    })
    expect(told.faults).toEqual([expect.stringMatching(/^bad\.yaml:1:/)])
    const { stdout } = await promisify(execFile)('bash', [
      '-c',
      told.agents![0]!.curl.replace('curl ', 'curl -sS --fail-with-body -m 15 '),
    ])
    expect(stdout).toContain('demo model')
    for (const link of told.links) expect([link, (await fetch(url + link)).status]).toEqual([link, 200])
    expect(told.links).toEqual(['/api/agents', '/v1/models', '/api/runs', '/health'])
    const text = await (await page()).text()
    expect(text).toContain(`<h1>Millrace <small>${version}</small></h1>`)
    for (const link of told.links) expect(text).toContain(`<a href="${link}">`)
    expect(text).toContain('Says &#60;b&#62;something&#60;/b&#62; &#38; more')
    expect(text).toContain('bad.yaml:1:')
    expect([told.agUi, text.includes(`<code>${url}/ag-ui/&#60;agent&#62;</code>`)]).toEqual([
      { url: `${url}/ag-ui/<agent>` },
      true,
    ])
    expect([told.openai, text.includes(`<code>${url}/v1</code>`)]).toEqual([{ baseURL: `${url}/v1` }, true])
  })

  test('the page is one answer without a script, and its policy allows nothing but its own style', async () => {
    const { page } = await served({ 'a.yaml': demo() })
    const response = await page()
    const text = await response.text()
    const policy = response.headers.get('content-security-policy')!
    const nonce = /^default-src 'none'; style-src 'nonce-([\w-]+)'; /u.exec(policy)![1]!
    expect(policy).toContain("frame-ancestors 'none'")
    expect(text).toContain(`<style nonce="${nonce}">`)
    expect((await page()).headers.get('content-security-policy')).not.toContain(nonce)
    expect(text).not.toMatch(/<script|<link|<img|<iframe|\bsrc=|\bstyle=|\bon\w+=|url\(|@import/u)
    expect(text.match(/href="[^"]*"/gu)!.every((link) => link.startsWith('href="/'))).toBe(true)
    expect(text).toContain('<meta name="viewport" content="width=device-width')
    expect(text).toContain('<html lang="en">')
    // What is wider than a phone scrolls by itself, with the keyboard too.
    expect(text).toMatch(/<pre tabindex="0"/u)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  })

  test('what agents say of themselves, and the name that a request came to, are text', async () => {
    engine = createEngine({
      agents: { '"><script>alert(1)</script>': agent('', about(`</pre><img src=x onerror="alert('2')">`)) },
    })
    const handler = createHandler({ runtime: engine.runtime })
    const text = await (await handler(new Request(`http://x/?"><script>3</script>`, { headers: html }))).text()
    expect(text).not.toMatch(/<script|<img|onerror="/u)
    expect(text).toContain('&#60;img src=x onerror=&#34;alert(&#39;2&#39;)&#34;&#62;')
  })

  test('with a key the page is there, and shows no agent to who does not have it', async () => {
    const { url, json, page } = await served(
      { 'secretive.yaml': demo(about('Nobody knows')), 'bad-one.yaml': 'workflow: 7\n' },
      { apiKey: key },
    )
    for (const authorization of ['', 'Bearer wrong']) {
      const response = await page({ authorization })
      const text = await response.text()
      expect(response.status).toBe(200)
      expect(text).toContain('Authorization: Bearer &#60;key&#62;')
      const told = await json({ authorization })
      expect(told).toEqual({
        name: 'Millrace',
        version,
        message: expect.stringContaining('Authorization: Bearer'),
        links: ['/health'],
      })
      for (const said of [text, JSON.stringify(told)]) expect(said).not.toMatch(/secretive|Nobody knows|bad-one/u)
    }
    const { agents } = await json({ authorization: `Bearer ${key}` })
    expect(agents).toMatchObject([
      { id: 'secretive', curl: expect.stringContaining('-H "Authorization: Bearer $MILLRACE_API_KEY"') },
    ])
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200)
  })

  test('what authorize refuses sees a page without agents', async () => {
    engine = createEngine({ agents: { secretive: agent() } })
    const authorize = (request: Request) => request.headers.get('cookie') === 'me'
    const handler = createHandler({ runtime: engine.runtime, authorize })
    const ask = async (headers: Record<string, string>) => (await handler(new Request('http://x/', { headers }))).text()
    expect(await ask(html)).not.toContain('secretive')
    expect(await ask({ ...html, cookie: 'me' })).toContain('secretive')
  })

  test('a link on another site may lead here; a page of it may not, and no other name may', async () => {
    const { url } = await served({ 'a.yaml': demo() })
    const { request } = await import('node:http')
    const status = async (path: string, headers: Record<string, string>) =>
      new Promise<number | undefined>((resolve, reject) => {
        const { hostname, port } = new URL(url)
        // fetch would set these headers itself.
        const asked = request({ hostname, port, path, headers }, (response) => {
          response.resume()
          resolve(response.statusCode)
        })
        asked.on('error', reject).end()
      })
    expect(await status('/', { 'sec-fetch-site': 'cross-site' })).toBe(200)
    expect(await status('/api/agents', { 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await status('/', { origin: 'https://evil.example' })).toBe(403)
    expect(await status('/', { host: 'evil.example' })).toBe(403)
  })

  test('a handler that serves chats only has no link to the runs', async () => {
    engine = createEngine({ agents: { a: agent() } })
    const handler = createHandler({ runtime: engine.runtime })
    const response = await handler(new Request('http://x/', { headers: { accept: 'application/json' } }))
    expect(((await response.json()) as Home).links).toEqual(['/api/agents', '/v1/models', '/health'])
  })
})
