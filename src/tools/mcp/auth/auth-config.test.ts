import { describe, expect, test } from 'vitest'
import { checkServer, type McpServer } from '../server.ts'

const https = 'https://crm.example/mcp'
const secret = { clientId: 'desk', secretEnv: 'CRM_SECRET' }

const check = (auth: unknown, more: object = {}) =>
  checkServer('crm', { url: https, auth, ...more } as unknown as McpServer)

describe('auth of an MCP server', () => {
  test.for<[string, unknown, object?]>([
    ['a secret', { clientCredentials: { ...secret, scope: 'read', issuer: 'https://id.example' } }],
    ['a key', { clientCredentials: { clientId: 'desk', privateKeyEnv: 'KEY', algorithm: 'ES256', keyId: '1' } }],
    ['none', undefined],
    ['this machine', { clientCredentials: secret }, { url: 'http://localhost:3000/mcp' }],
  ])('%s', ([, auth, more]) => {
    expect(() => check(auth, more)).not.toThrow()
  })

  test.for<[string, unknown, object?]>([
    ['auth must be {', 'x'],
    ['auth.clientCredentials must be an object', {}],
    ['auth.basic is not a known setting', { basic: {}, clientCredentials: secret }],
    ['auth.clientCredentials.clientId is missing', { clientCredentials: { secretEnv: 'X' } }],
    ['clientId must be a text', { clientCredentials: { ...secret, clientId: 7 } }],
    ['needs either secretEnv or privateKeyEnv', { clientCredentials: { clientId: 'desk' } }],
    ['needs either secretEnv or privateKeyEnv', { clientCredentials: { ...secret, privateKeyEnv: 'KEY' } }],
    ['algorithm and keyId belong to privateKeyEnv', { clientCredentials: { ...secret, keyId: '1' } }],
    [
      'algorithm must be one of RS256',
      { clientCredentials: { clientId: 'a', privateKeyEnv: 'KEY', algorithm: 'none' } },
    ],
    ['secret is not a known setting', { clientCredentials: { clientId: 'desk', secret: 'hush-hush' } }],
    ['issuer must be an https:// address', { clientCredentials: { ...secret, issuer: 'http://id.example' } }],
    ['auth needs an https:// url', { clientCredentials: secret }, { url: 'http://crm.example/mcp' }],
    ['either auth or headers.authorization', { clientCredentials: secret }, { headers: { Authorization: 'Bearer x' } }],
    ['auth is for servers with a url', { clientCredentials: secret }, { url: undefined, command: 'crm' }],
  ])('%s', ([words, auth, more]) => {
    expect(() => check(auth, more)).toThrow(words)
    expect(() => check(auth, more)).toThrow(/^mcpServers\.crm: /u)
    expect(() => check(auth, more)).not.toThrow('hush')
  })
})
