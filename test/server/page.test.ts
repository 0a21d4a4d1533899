/** The page's shell and files: where they are served, to whom, with which headers, and that nothing else has changed. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../src/server/handler.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import type { WebFiles } from '../../src/server/routes/page.ts'
import { openWebFiles } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { agent, createEngine } from '../support/engine.ts'

const browser = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
const key = 'a-long-secret-key'

const files = new Map([
  ['index.html', { body: '<html nonce-is="__NONCE__">shell</html>', contentType: 'text/html; charset=utf-8' }],
  ['icon.svg', { body: '<svg/>', contentType: 'image/svg+xml' }],
  ['assets/large-1a2b.js', { body: 'large()\n'.repeat(500), contentType: 'text/javascript; charset=utf-8' }],
  ['assets/main-1a2b.js', { body: 'main()', contentType: 'text/javascript; charset=utf-8' }],
])
const web: WebFiles = {
  async read(path) {
    const file = files.get(path)
    return file && { body: new TextEncoder().encode(file.body), contentType: file.contentType }
  },
}

function served(options: Partial<HandlerOptions> = {}) {
  const engine = createEngine({ agents: { secretive: agent() } })
  onTestFinished(() => engine.close())
  const handler = createHandler({ runtime: engine.runtime, localOnly: true, web, ...options })
  return async (path: string, headers: Record<string, string> = browser, method = 'GET') => {
    const response = await handler(
      new Request(`http://localhost:3000${path}`, { method, headers: { host: 'localhost:3000', ...headers } }),
    )
    return { response, status: response.status, headers: response.headers, text: await response.text() }
  }
}

const isShell = ({ text }: { text: string }) => text.endsWith('>shell</html>')

describe('the shell', () => {
  test.each([
    '/',
    '/chat',
    '/chat/a',
    '/runs',
    '/runs/run_1',
    '/beside',
    '/compare',
    '/agents',
    '/agents/a',
    '/threads',
    '/threads/t',
    '/tests',
    '/tests/shop%2Forders',
    '/overview',
  ])('is at %s for browsers, with the path as its own affair', async (path) => {
    const get = served()
    for (const each of [path, `${path}?x=%3Cscript%3E`]) {
      const answer = await get(each)
      expect([answer.status, isShell(answer)]).toEqual([200, true])
      // Nothing of the request is in it.
      expect(answer.text).not.toContain('script')
    }
  })

  test.each([
    '/runs/a/b',
    '/agents/a/b',
    '/overview/x',
    '/compare/x',
    '/run',
    '/api',
    '/api/nothing',
    '/index.html',
    '/Runs',
    '/runs/',
    '//runs',
    '/assets',
    '/assets/',
    '/health/x',
  ])('is at the unknown %s for browsers, which say that there is nothing; others are told so as JSON', async (path) => {
    const get = served({ apiKey: key })
    const [person, program] = [
      await get(path),
      await get(path, { accept: 'application/json', authorization: `Bearer ${key}` }),
    ]
    expect([person.status, isShell(person), person.headers.get('content-type')]).toEqual([
      404,
      true,
      'text/html; charset=utf-8',
    ])
    expect([program.status, JSON.parse(program.text).error.code]).toEqual([404, 'not-found'])
    expect(isShell(await served({ web: undefined } as object)(path))).toBe(false)
  })

  test('is for those who ask for HTML: others get what they got before', async () => {
    const [withPage, without] = [served(), served({ web: undefined } as object)]
    for (const [path, accept] of [
      ['/', 'application/json'],
      ['/', '*/*'],
      ['/', 'application/json, text/html;q=0.9'],
      ['/runs', '*/*'],
      ['/runs', 'application/json'],
      ['/agents', ''],
      ['/api/agents', 'text/html'],
      ['/api/runs', 'text/html'],
      ['/health', 'text/html'],
      ['/v1/models', 'text/html'],
    ] as const) {
      const [a, b] = await Promise.all([withPage(path, { accept }), without(path, { accept })])
      const told = ({ status, text, headers }: typeof a) => [
        status,
        headers.get('content-type'),
        text.replaceAll(/nonce[-=]"?[\w-]+|"uptime":\d+/gu, ''),
        headers.get('vary'),
      ]
      // The list of routes in a 404 tells of the page's own routes, too.
      if (a.status === 404) expect([a.status, isShell(a)], `${path} for ${accept}`).toEqual([b.status, false])
      else expect(told(a), `${path} for ${accept}`).toEqual(told(b))
    }
  })

  test('is not for other methods', async () => {
    const get = served()
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect(isShell(await get('/runs', browser, method)), method).toBe(false)
    }
    const head = await get('/runs', browser, 'HEAD')
    expect([head.status, head.text, head.headers.get('content-type')]).toEqual([200, '', 'text/html; charset=utf-8'])
    expect(head.headers.get('content-security-policy')).toContain(`script-src 'self';`)
  })

  test('has a policy that allows what the page does and nothing else, with a nonce of its own each time', async () => {
    const get = served()
    const [first, second] = [await get('/'), await get('/runs')]
    const [, nonce] = /nonce-is="([\w-]{36})"/u.exec(first.text) ?? []
    expect(first.headers.get('content-security-policy')).toBe(
      `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data: blob:; ` +
        `connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; ` +
        `require-trusted-types-for 'script'; trusted-types millrace`,
    )
    expect(second.text).not.toContain(nonce)
    expect(second.headers.get('content-security-policy')).not.toContain(nonce)
    for (const [name, value] of Object.entries({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      vary: 'accept',
    })) {
      expect(first.headers.get(name), name).toBe(value)
    }
  })
})

describe('its files', () => {
  test('have types and hashes that are kept for ever; the icon has no hash', async () => {
    const get = served()
    const { response, text } = await get('/assets/main-1a2b.js', { accept: '*/*' })
    expect([response.status, text]).toEqual([200, 'main()'])
    expect(Object.fromEntries(response.headers)).toEqual({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; script-src 'self'; style-src 'self'; .*; trusted-types millrace$/u,
      ),
      vary: 'accept-encoding',
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    })
    expect((await get('/icon.svg')).headers.get('cache-control')).toBe('no-cache')
  })

  test('are compressed for those who can read that', async () => {
    const engine = createEngine({ agents: { secretive: agent() } })
    onTestFinished(() => engine.close())
    const handler = createHandler({ runtime: engine.runtime, localOnly: true, web })
    const get = async (path: string, accepted: string) => {
      const headers = { host: 'localhost:3000', 'accept-encoding': accepted }
      const response = await handler(new Request(`http://localhost:3000${path}`, { headers }))
      return { headers: response.headers, body: Buffer.from(await response.arrayBuffer()) }
    }
    const { body } = files.get('assets/large-1a2b.js')!
    for (const accepted of ['gzip, deflate, br', 'br, GZIP;q=0.5', 'gzip']) {
      const got = await get('/assets/large-1a2b.js', accepted)
      expect([got.headers.get('content-encoding'), got.headers.get('vary')]).toEqual(['gzip', 'accept-encoding'])
      expect(got.body.length).toBeLessThan(200)
      expect(gunzipSync(got.body).toString()).toBe(body)
    }
    for (const accepted of ['', 'br', 'gzip;q=0', 'identity, gzip; q=0.0', 'x-gzip-like']) {
      const got = await get('/assets/large-1a2b.js', accepted)
      expect([got.headers.get('content-encoding'), got.headers.get('vary')], accepted).toEqual([
        null,
        'accept-encoding',
      ])
      expect(got.body.toString()).toBe(body)
    }
    // Nothing is won with a small one.
    expect((await get('/assets/main-1a2b.js', 'gzip')).headers.get('content-encoding')).toBeNull()
  })

  test('that are not there are 404, and nobody keeps that', async () => {
    const get = served()
    for (const path of ['/assets/main-0000.js', '/assets/constructor', '/favicon.ico']) {
      const { status, headers } = await get(path)
      expect([status, headers.get('cache-control')], path).toEqual([404, 'no-store'])
    }
  })

  test('are those of the folder: nothing beside it can be read', async () => {
    const dir = folder({ 'outside.js': 'outside', 'secret.txt': 'secret' })
    mkdirSync(join(dir, 'web/assets'), { recursive: true })
    writeFileSync(join(dir, 'web/assets/a.js'), 'inside')
    writeFileSync(join(dir, 'web/assets/secret.txt'), 'of no known type')
    writeFileSync(join(dir, 'web/.stamp'), 'stamp')
    const real = openWebFiles(pathToFileURL(`${dir}/web/`))
    const read = async (path: string) => (await real.read(path)) && 'found'
    expect(await read('assets/a.js')).toBe('found')
    for (const path of [
      '../outside.js',
      'assets/../../outside.js',
      '../secret.txt',
      'assets/secret.txt',
      '.stamp',
      '..',
      '',
      'assets',
      'assets/a.js/',
      'assets/a.js\0.js',
      pathToFileURL(join(dir, 'outside.js')).href,
      '//x/a.js',
    ]) {
      expect(await read(path), path).toBeUndefined()
    }
    const get = served({ web: real })
    for (const path of [
      '/assets/..%2foutside.js',
      '/assets/..%5coutside.js',
      '/assets/%2e%2e/outside.js',
      '/assets/../../outside.js',
      '/assets/a.js%00.js',
      '/assets/..;/outside.js',
    ]) {
      const { status, text } = await get(path)
      expect([status, text.includes('outside\n') || text === 'outside'], path).toEqual([404, false])
    }
  })
})

describe('access', () => {
  test('with a key, the shell and its files need none and tell nothing; all else needs it', async () => {
    const get = served({ apiKey: key, localOnly: false })
    for (const path of ['/', '/runs', '/agents/secretive', '/assets/main-1a2b.js', '/icon.svg']) {
      const { status, text } = await get(path)
      expect([status, text.includes('secretive') || text.includes(key)], path).toEqual([200, false])
    }
    for (const path of ['/api/agents', '/api/runs', '/api/live', '/api/server', '/v1/models']) {
      expect((await get(path)).status, path).toBe(401)
    }
    // Who does not ask for HTML at a room's path asks for a route.
    for (const path of ['/runs', '/agents/secretive']) {
      expect((await get(path, { accept: '*/*' })).status, path).toBe(404)
    }
  })

  test('an `authorize` that refuses leaves the shell, which holds nothing, and shows nothing else', async () => {
    const asked: string[] = []
    const get = served({
      localOnly: false,
      authorize(request) {
        asked.push(new URL(request.url).pathname)
        return false
      },
    })
    expect(isShell(await get('/runs'))).toBe(true)
    expect(asked).toEqual([])
    expect((await get('/api/agents')).status).toBe(403)
    expect(asked).toEqual(['/api/agents'])
    expect((await get('/', { accept: 'application/json' })).text).not.toContain('secretive')
  })

  test('on this machine only: links of other sites open it, their pages cannot read it, other host names get nothing', async () => {
    const get = served()
    for (const path of ['/', '/runs/run_1', '/assets/main-1a2b.js']) {
      expect((await get(path, { ...browser, 'sec-fetch-site': 'cross-site' })).status, path).toBe(200)
      const read = await get(path, { ...browser, origin: 'https://elsewhere.example' })
      expect([read.status, read.headers.get('access-control-allow-origin')], path).toEqual([403, null])
      expect((await get(path, { ...browser, host: 'rebound.example' })).status, path).toBe(403)
    }
    expect((await get('/api/runs', { ...browser, 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  })

  test('a handler without the page has no rooms: `/` is one plain page, the rest is as it was', async () => {
    const get = served({ web: undefined } as object)
    for (const path of ['/runs', '/agents/secretive', '/assets/main-1a2b.js', '/icon.svg']) {
      expect((await get(path)).status, path).toBe(404)
    }
    const { status, headers, text } = await get('/')
    expect([status, text.includes('secretive')]).toEqual([200, true])
    expect(headers.get('content-security-policy')).not.toContain('script-src')
    const guarded = served({ web: undefined, apiKey: key, localOnly: false } as object)
    expect((await guarded('/runs')).status).toBe(401)
  })
})
