import { expect, test } from 'vitest'
import { createRedactor } from '../part/redact.ts'
import { secretValues } from './secrets.ts'

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

test('identities stay as they are, whatever a secret is called', () => {
  const start = { type: 'run-start', runId: 'run_assistant', agent: 'assistant', threadId: 'assistant-1' } as const
  const part = { ...start, protocol: 'assistant', pipeline: '', input: { a: 'assistant' } }
  expect(createRedactor(['assistant']).redact('', part)).toEqual([{ ...part, input: { a: '[redacted]' } }])
})

test('a secret is found as base64 too', () => {
  const part = { type: 'warning', code: 'x', message: `sent ${btoa('sk-secretvalue')}` } as const
  expect(createRedactor(['sk-secretvalue']).redact('', part)).toEqual([{ ...part, message: 'sent [redacted]' }])
})
