/** An issuer of tokens on loopback: its discovery, its keys, tokens that it signs, and sign-ins by the code flow. */
import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK, type JWTPayload } from 'jose'

export interface TestIssuer {
  url: string
  /** The paths that were requested. */
  requests: string[]
  /** What its JWKS has. */
  keys: JWK[]
  /** What clients sent as theirs. */
  secrets: (string | null)[]
  /** Answers 500. */
  isAway: boolean
  /** A new key, in its JWKS unless `isHidden`. */
  addKey(kid: string, alg?: string, isHidden?: boolean): Promise<CryptoKey>
  /** A token that counts for ten minutes, signed by the newest key. `now`: epoch ms. */
  token(now: number, claims?: JWTPayload, by?: { kid?: string; isNameless?: boolean }): Promise<string>
  /** Someone signs in at the address that the browser was sent to. Returns the one that the browser is sent back to. */
  authorize(address: string, now: number, claims?: JWTPayload): string
  close(): Promise<void>
}

export async function openIssuer(): Promise<TestIssuer> {
  const signers = new Map<string, { key: CryptoKey; alg: string }>()
  const server = createServer((request, response) => {
    issuer.requests.push(request.url!)
    void answerOf(request).then((found) => {
      response.writeHead(found === undefined ? 500 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(found))
    })
  })
  const codes = new Map<string, { challenge: string; now: number; claims: JWTPayload }>()

  async function answerOf(request: IncomingMessage): Promise<object | undefined> {
    if (issuer.isAway) return undefined
    const { url } = issuer
    if (request.url === '/jwks.json') return { keys: issuer.keys }
    if (request.url !== '/token') {
      const algorithms = { id_token_signing_alg_values_supported: ['RS256', 'ES256', 'EdDSA'] }
      const endpoints = { authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token` }
      return { issuer: url, jwks_uri: `${url}/jwks.json`, ...endpoints, ...algorithms }
    }
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = new URLSearchParams(Buffer.concat(pieces).toString())
    const code = codes.get(body.get('code') ?? '')
    codes.delete(body.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(body.get('code_verifier') ?? '')
      .digest('base64url')
    if (code?.challenge !== challenge) return undefined
    issuer.secrets.push(body.get('client_secret'))
    return { access_token: 'opaque', token_type: 'Bearer', id_token: await issuer.token(code.now, code.claims) }
  }
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const issuer: TestIssuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    keys: [],
    secrets: [],
    isAway: false,
    async addKey(kid, alg = 'ES256', isHidden = false) {
      const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
      if (!isHidden) issuer.keys.push({ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' })
      signers.set(kid, { key: privateKey, alg })
      return publicKey
    },
    token(now, claims = {}, { kid = [...signers.keys()].at(-1)!, isNameless = false } = {}) {
      const signer = signers.get(kid)!
      const seconds = Math.floor(now / 1000)
      const all = { iss: issuer.url, aud: 'millrace', sub: 'u1', iat: seconds, exp: seconds + 600, ...claims }
      return new SignJWT(all).setProtectedHeader({ alg: signer.alg, ...(!isNameless && { kid }) }).sign(signer.key)
    },
    authorize(address, now, claims = {}) {
      const { searchParams } = new URL(address)
      const of = (name: string) => searchParams.get(name)!
      const code = randomUUID()
      const all = { aud: of('client_id'), nonce: of('nonce'), ...claims }
      codes.set(code, { challenge: of('code_challenge'), now, claims: all })
      const back = new URL(of('redirect_uri'))
      back.search = new URLSearchParams({ code, state: of('state') }).toString()
      return back.href
    },
    close: () => new Promise((done) => void server.close(() => done()).closeAllConnections()),
  }
  await issuer.addKey('first')
  return issuer
}
