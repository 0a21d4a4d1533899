import { describe, expect, test } from 'vitest'
import { createRedactor } from '../fold/redact.ts'
import { secretValues } from './secrets.ts'

describe('secretValues', () => {
  test('secrets of the environment: by name, trimmed, and the password in any URL', () => {
    const env = {
      OPENAI_API_KEY: 'sk-secretvalue\n',
      GITHUB_PAT: 'ghp_123456789',
      api_key: 'abcdefgh',
      OPENAI_KEY_2: 'sk-2222222',
      DB_PASS: 'passpass1',
      DATABASE_URL: 'postgres://u:pw%20123456@h/db',
      MYSQL_PWD: 'passpass2',
      PATH: '/usr/bin:/bin',
      PWD: '/home/ada/mill',
      OLDPWD: '/home/ada',
      KEYBOARD: 'qwerty-de',
    }
    expect(secretValues({}, env)).toEqual([
      'sk-secretvalue',
      'ghp_123456789',
      'abcdefgh',
      'sk-2222222',
      'passpass1',
      'pw%20123456',
      'pw 123456',
      'passpass2',
    ])
  })

  test('secrets that the config holds: headers and environment of MCP servers, keys in an address', () => {
    const config = {
      mcpServers: { m: { url: 'https://x.example', headers: { authorization: 'Bearer tok-123456' } } },
      models: { endpoints: [{ name: 'e', baseURL: 'https://e.example/v1?key=in-the-url' }] },
    } as Parameters<typeof secretValues>[0]
    expect(secretValues(config, {})).toEqual(['Bearer tok-123456', 'tok-123456', 'in-the-url'])
  })

  test('keys of Millrace: of the config by their variable, others by their form', () => {
    const made = `mr_${'a1-_'.repeat(10)}abc`
    const config = { server: { access: { keys: [{ name: 'ci', env: 'CI' }] } } } as Parameters<typeof secretValues>[0]
    expect(secretValues(config, { CI: 'plainwordsthatnobodywouldthinksecret', NOTE: `use ${made} here` })).toEqual([
      'plainwordsthatnobodywouldthinksecret',
      made,
    ])
  })

  const valuesOf = (env: Record<string, string>) => secretValues({}, env)

  test.each([
    ['API_KEYS', 'key-one-1,key-two-2', ['key-one-1,key-two-2', 'key-one-1', 'key-two-2']],
    ['TOKENS', '["tok-aaaa-1", "tok-bbbb-2"]', ['["tok-aaaa-1", "tok-bbbb-2"]', 'tok-aaaa-1', 'tok-bbbb-2']],
    ['AUTHORIZATION', 'Bearer abc-123-def', ['Bearer abc-123-def']],
    ['SESSION_JWT', 'eyJhbGciOi.eyJzdWIi.c2ln', ['eyJhbGciOi.eyJzdWIi.c2ln']],
    ['accessToken', 'camel-case-1', ['camel-case-1']],
    ['SECRET_KEY_BASE', 'rails-base-1', ['rails-base-1']],
    ['API_KEY_PROD', 'prod-key-1', ['prod-key-1']],
  ])('a name says so: %s', (name, value, expected) => {
    expect(valuesOf({ [name]: value })).toEqual(expected)
  })

  test.each([
    ['BUS', 'Endpoint=sb://b.example/;SharedAccessKeyName=root;SharedAccessKey=a+b/c12345=', ['a+b/c12345=']],
    ['STORE', 'DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=bXlrZXk+MTIz==;Suffix=x', ['bXlrZXk+MTIz==']],
    ['ODBC', 'Server=db;User Id=sa;Password="p;w 12345"', ['p;w 12345']],
    ['SAS_URL', 'https://b.example/c?sv=1&sig=a%2Bb12345&se=2', ['a%2Bb12345', 'a+b12345']],
    ['REPLICAS', 'redis://u:pw-first-1@a,redis://:pw-other-2@b', ['pw-first-1', 'pw-other-2']],
    ['REMOTE', 'https://ghp0123456789abcdef@github.com/a/b', ['ghp0123456789abcdef']],
    ['HOOK', 'see https://x.example/?api_key=in-a-query-1', ['in-a-query-1']],
    ['ACCOUNT', '{"type":"x","private_key":"in-json-123","project":"mill-project"}', ['in-json-123']],
  ])('credentials inside a value, whatever its name: %s', (name, value, expected) => {
    expect(valuesOf({ [name]: value })).toEqual(expected)
  })

  test('settings, short words, small numbers and common values are no secrets', () => {
    const env = {
      COOKIE_POLICY: 'strict',
      COOKIE: 'strict',
      AUTH: 'disabled',
      AUTH_MODE: 'proof-of-possession',
      SESSION_COOKIE_NAME: 'millrace.session',
      TOKEN_TTL: '15minutes-at-most',
      MAX_TOKENS: '128000',
      DB_PASSWORD: 'password',
      POSTGRES_PASSWORD: 'postgres',
      SSH_AUTH_SOCK: '/run/user/1000/ssh-agent.1',
      KEY_FILE: '/etc/ssl/private.pem',
      BYPASS: 'localhost.localdomain',
      COMPAT: 'legacy-mode-1',
      DATABASE_URL: 'postgres://postgres:postgres@localhost/db',
      GIT_REMOTE: 'ssh://git@github.com/a/b',
    }
    expect(valuesOf(env)).toEqual([])
  })

  test('the config names more: variables and values, also such that would pass for words', () => {
    const secrets = { names: ['HOOK', 'MOTTO'], values: ['from-the-vault', 'Bitter'] }
    const env = { HOOK: 'https://hooks.example/T0/B1', MOTTO: 'patience', OTHER: 'untouched-1' }
    expect(secretValues({ secrets }, env)).toEqual([
      'https://hooks.example/T0/B1',
      'patience',
      'from-the-vault',
      'Bitter',
    ])
  })

  test('of an MCP server: headers, environment, arguments and query that are secret, and nothing else', () => {
    const basic = btoa('user:pass-word-9')
    const mcpServers = {
      far: {
        url: 'https://x.example/mcp?token=in-the-url-1',
        headers: { authorization: `Basic ${basic}`, accept: 'application/json', 'x-region': 'eu-central-1' },
      },
      near: {
        command: 'npx',
        args: ['-y', 'some-package-name', '--api-key', 'in-an-argument', '--token=other-argument', '--verbose'],
        env: { SHOP_TOKEN: 'in-the-env-1', LOG_LEVEL: 'warnings-only', CODE: 'k3jH5gF6dS7aQ8wE9' },
      },
      listed: { command: 'x', env: ['SHOP_TOKEN_VARIABLE'] },
    }
    expect(secretValues({ mcpServers }, {})).toEqual([
      'in-the-url-1',
      `Basic ${basic}`,
      basic,
      'pass-word-9',
      'in-the-env-1',
      'k3jH5gF6dS7aQ8wE9',
      'in-an-argument',
      'other-argument',
    ])
  })

  test('variables that the auth of an MCP server names are secret, whatever they are called', () => {
    const url = 'https://crm.example/mcp'
    const mcpServers = {
      one: { url, auth: { clientCredentials: { clientId: 'desk', secretEnv: 'CRM' } } },
      two: { url, auth: { clientCredentials: { clientId: 'desk', privateKeyEnv: 'SIGNER' } } },
    }
    const env = { CRM: 'hush-hush', SIGNER: 'a private key', OTHER: 'not a secret' }
    expect(secretValues({ mcpServers }, env)).toEqual(['hush-hush', 'a private key'])
  })

  test('identities stay as they are, whatever a secret is called', () => {
    const start = { type: 'run-start', runId: 'run_assistant', agent: 'assistant', threadId: 'assistant-1' } as const
    const part = { ...start, protocol: 'assistant', pipeline: '', input: { a: 'assistant' } }
    expect(createRedactor(['assistant']).redact('', part)).toEqual([{ ...part, input: { a: '[redacted]' } }])
  })

  test('a secret is found as base64 too', () => {
    const part = { type: 'warning', code: 'x', message: `sent ${btoa('sk-secretvalue')}` } as const
    expect(createRedactor(['sk-secretvalue']).redact('', part)).toEqual([{ ...part, message: 'sent [redacted]' }])
  })
})
