/** A real OpenID provider on loopback, `oidc-provider`, and a browser that signs in to it. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { Provider } from 'oidc-provider'

export interface OpenIdProvider {
  url: string
  /** Its signing keys, private. Another start has those that are here then. */
  keys: JWK[]
  newKey(kid: string, alg?: string): Promise<JWK>
  /** On the same port, with what `keys` has. Everything else is forgotten. */
  start(): Promise<void>
  stop(): Promise<void>
}

/** Redirects of a browser to its end: at most this many. */
const mostHops = 20

export async function openProvider(redirectUris: () => string[]): Promise<OpenIdProvider> {
  let server: Server | undefined
  let port = 0

  async function newKey(kid: string, alg = 'RS256'): Promise<JWK> {
    const { privateKey } = await generateKeyPair(alg, { extractable: true })
    return { ...(await exportJWK(privateKey)), kid, alg, use: 'sig' }
  }

  const opened: OpenIdProvider = {
    url: '',
    keys: [await newKey('first')],
    newKey,
    async start() {
      const listening = (server = createServer())
      await new Promise<void>((done) => listening.listen(port, '127.0.0.1', done))
      port = (listening.address() as AddressInfo).port
      opened.url = `http://127.0.0.1:${port}`
      const provider = new Provider(opened.url, {
        jwks: { keys: opened.keys as never },
        cookies: { keys: ['a key for tests'] },
        clients: [
          {
            client_id: 'page',
            application_type: 'native',
            token_endpoint_auth_method: 'none',
            redirect_uris: redirectUris(),
            grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
            response_types: ['code'],
          },
        ],
        claims: { openid: ['sub', 'org', 'roles'], profile: ['name'] },
        // So that ID tokens have the claims: by default only the userinfo endpoint has them.
        conformIdTokenClaims: false,
        features: { devInteractions: { enabled: true }, deviceFlow: { enabled: true } },
        findAccount: (_context, id) => ({
          accountId: id,
          claims: () => ({ sub: id, name: 'Ann Other', org: 'acme', roles: ['operator', 'editor'] }),
        }),
        pkce: { required: () => true },
        ttl: { IdToken: 600, AccessToken: 600, Grant: 3600, Interaction: 600, Session: 3600, DeviceCode: 600 },
      })
      const answer = provider.callback()
      listening.on('request', (request, response) => {
        // A connection that is kept would end with the next stop, in the middle of somebody's request.
        response.shouldKeepAlive = false
        void answer(request, response)
      })
    },
    async stop() {
      const closing = server!
      await new Promise((done) => void closing.close(done).closeAllConnections())
    },
  }
  await opened.start()
  return opened
}

/** A browser: follows redirects, keeps cookies by origin, and fills the provider's forms. */
export function createBrowser() {
  const jars = new Map<string, Map<string, { value: string; path: string }>>()

  async function request(url: string, form?: URLSearchParams): Promise<Response> {
    const { origin, pathname } = new URL(url)
    const jar = jars.get(origin) ?? new Map<string, { value: string; path: string }>()
    jars.set(origin, jar)
    const cookie = [...jar]
      .filter(([, { path }]) => pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`)
    const headers = { cookie: cookie.join('; '), ...(form && { origin }) }
    const response = await fetch(url, { redirect: 'manual', headers, ...(form && { method: 'POST', body: form }) })
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...rest] = line.split(/;\s*/u)
      const [name, value] = [pair!.slice(0, pair!.indexOf('=')), pair!.slice(pair!.indexOf('=') + 1)]
      const path = rest.find((each) => /^path=/iu.test(each))?.slice(5) ?? '/'
      if (value === '' || rest.some((each) => /^max-age=0$/iu.test(each))) jar.delete(name)
      else jar.set(name, { value, path })
    }
    return response
  }

  /** Until something is no redirect, or leads to an address that starts with `until`. */
  async function follow(url: string, { form, until }: { form?: URLSearchParams; until?: string } = {}) {
    let at = url
    let response = await request(at, form)
    for (let hop = 0; hop < mostHops && response.headers.has('location'); hop++) {
      at = new URL(response.headers.get('location')!, at).href
      if (until !== undefined && at.startsWith(until)) return { at, response, text: '' }
      response = await request(at)
    }
    return { at, response, text: await response.text() }
  }

  /** Fills the forms of the provider's pages, one after the other, with these values. */
  async function submitAll(url: string, values: Record<string, string>, until?: string) {
    let page = await follow(url, { ...(until !== undefined && { until }) })
    for (let i = 0; i < 5; i++) {
      const form = /<form[^>]*>[\s\S]*?<\/form>/u.exec(page.text)?.[0]
      if (form === undefined) break
      const action = /action="([^"]*)"/u.exec(form)?.[1]?.replaceAll('&amp;', '&') ?? page.at
      const body = new URLSearchParams()
      for (const [input] of form.matchAll(/<(?:input|button)[^>]*>/gu)) {
        const name = /name="([^"]*)"/u.exec(input)?.[1]
        if (name !== undefined) body.set(name, values[name] ?? /value="([^"]*)"/u.exec(input)?.[1] ?? '')
      }
      page = await follow(new URL(action, page.at).href, { form: body, ...(until !== undefined && { until }) })
    }
    return page
  }

  const cookieHeader = (origin: string) =>
    [...(jars.get(origin) ?? [])].map(([name, { value }]) => `${name}=${value}`).join('; ')

  return { request, follow, submitAll, cookieHeader }
}
