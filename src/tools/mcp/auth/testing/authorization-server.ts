/** A real authorization server on loopback: `oidc-provider`, with clients of several kinds, and tokens for the resources that are asked for. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, exportPKCS8, generateKeyPair } from 'jose'
import { Provider } from 'oidc-provider'

export interface TestAuthorizationServer {
  url: string
  /** The grants that were asked for at the token endpoint, with their bodies. */
  grants: URLSearchParams[]
  /** The secret of the client `desk`. */
  secret: string
  /** The private key of the client `signer`, in PEM. */
  key: string
  /** Metadata documents of clients, by their addresses. */
  documents: Map<string, object>
  /** How many clients have registered. */
  registered: number
  /** Called before a grant is answered; what it returns is answered instead. */
  intercept: (() => Promise<{ status: number; body: object } | undefined>) | undefined
  /** What was to be revoked. */
  revocations: URLSearchParams[]
  /** As `intercept`, for these. */
  interceptRevocation: TestAuthorizationServer['intercept']
  close(): Promise<void>
}

export interface AuthorizationServerOptions {
  /** Whether it revokes tokens. Default true. */
  revokes?: boolean
  /** Seconds that a token counts. Default 600. */
  lifetime?: number
  redirectUris?: () => string[]
}

export async function openAuthorizationServer({
  lifetime = 600,
  revokes = true,
  redirectUris = () => ['http://127.0.0.1/callback'],
}: AuthorizationServerOptions = {}): Promise<TestAuthorizationServer> {
  const signer = await generateKeyPair('ES256', { extractable: true })
  const own = await generateKeyPair('RS256', { extractable: true })
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const opened: TestAuthorizationServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    grants: [],
    secret: `desk-secret-${crypto.randomUUID()}`,
    key: await exportPKCS8(signer.privateKey),
    documents: new Map(),
    registered: 0,
    intercept: undefined,
    revocations: [],
    interceptRevocation: undefined,
    close: () => new Promise((done) => void server.close(() => done()).closeAllConnections()),
  }
  const machine = { grant_types: ['client_credentials'], response_types: [], redirect_uris: [] }
  const provider = new Provider(opened.url, {
    jwks: { keys: [{ ...(await exportJWK(own.privateKey)), kid: 'own', alg: 'RS256', use: 'sig' } as never] },
    cookies: { keys: ['a key for tests'] },
    clients: [
      {
        client_id: 'desk',
        client_secret: opened.secret,
        token_endpoint_auth_method: 'client_secret_basic',
        ...machine,
      },
      {
        client_id: 'signer',
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
        jwks: { keys: [{ ...(await exportJWK(signer.publicKey)), kid: 'one', alg: 'ES256', use: 'sig' }] },
        ...machine,
      },
      {
        client_id: 'page',
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        redirect_uris: redirectUris(),
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    scopes: ['read', 'files', 'offline_access'],
    features: {
      devInteractions: { enabled: true },
      clientCredentials: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: revokes },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' } as never,
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, resource) => ({
          scope: 'read files',
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: lifetime,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    // The library fetches documents of clients.
    fetch: async (asked: string | URL | Request) => {
      const found = opened.documents.get(asked instanceof Request ? asked.url : asked.toString())
      return found === undefined ? new Response(null, { status: 404 }) : Response.json(found)
    },
    pkce: { required: () => true },
    issueRefreshToken: async (_context, client) => client.grantTypeAllowed('refresh_token'),
    ttl: {
      IdToken: 600,
      Grant: 3600,
      Interaction: 600,
      Session: 3600,
      RefreshToken: 3600,
      ClientCredentials: lifetime,
    },
  })
  const answer = provider.callback()
  server.on('request', (request, response) => {
    // A connection that is kept would end with the server, in the middle of somebody's request.
    response.shouldKeepAlive = false
    void (async () => {
      if (request.method === 'POST' && request.url === '/reg') opened.registered += 1
      const isGrant = request.url === '/token'
      if (request.method === 'POST' && (isGrant || request.url === '/token/revocation')) {
        const body = await textOf(request)
        ;(isGrant ? opened.grants : opened.revocations).push(new URLSearchParams(body))
        Object.assign(request, { body })
        const other = await (isGrant ? opened.intercept : opened.interceptRevocation)?.()
        if (other !== undefined) {
          response.writeHead(other.status, { 'content-type': 'application/json' }).end(JSON.stringify(other.body))
          return
        }
      }
      await answer(request, response)
    })()
  })
  return opened
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString()
}
