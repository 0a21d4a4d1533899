/** An issuer of tokens on loopback: its discovery, its keys, and tokens that it signs. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK, type JWTPayload } from 'jose'

export interface TestIssuer {
  url: string
  /** The paths that were requested. */
  requests: string[]
  /** What its JWKS has. */
  keys: JWK[]
  /** Answers 500. */
  isAway: boolean
  /** A new key, in its JWKS unless `isHidden`. */
  addKey(kid: string, alg?: string, isHidden?: boolean): Promise<CryptoKey>
  /** A token that counts for ten minutes, signed by the newest key. `now`: epoch ms. */
  token(now: number, claims?: JWTPayload, by?: { kid?: string; isNameless?: boolean }): Promise<string>
  close(): Promise<void>
}

export async function openIssuer(): Promise<TestIssuer> {
  const signers = new Map<string, { key: CryptoKey; alg: string }>()
  const server = createServer((request, response) => {
    issuer.requests.push(request.url!)
    if (issuer.isAway) return void response.writeHead(500).end()
    const found =
      request.url === '/jwks.json'
        ? { keys: issuer.keys }
        : { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks.json`, authorization_endpoint: `${issuer.url}/auth` }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const issuer: TestIssuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    keys: [],
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
    close: () => new Promise((done) => void server.close(() => done()).closeAllConnections()),
  }
  await issuer.addKey('first')
  return issuer
}
