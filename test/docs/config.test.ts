/** docs/config.md names the keys that a config may have, no others, and what they are without it. */
import { describe, expect, test } from 'vitest'
import { checkConfig } from '../../src/project/check-config.ts'
import { settingsOf } from '../../src/server/settings.ts'
import { readDocument } from './documents.ts'

/** What the check says there is. */
function keysOf(place: string, config: object): string[] {
  try {
    checkConfig(config)
  } catch (error) {
    const list = new RegExp(`${place}: (.*)\\.$`, 'u').exec((error as Error).message)![1]!
    return list.split(', ')
  }
  throw new Error('it was not refused')
}

const text = readDocument('docs/config.md')
const rows = new Map(
  [...text.matchAll(/^\| `([\w.]+)` \|(?: (.*?) \|)?.*$/gmu)].map(([line, key, second]) => [key!, { line, second }]),
)

describe('docs: config', () => {
  test('every key is there, and no other', () => {
    const [top, server, record] = [
      keysOf('Settings', { no: 1 }).filter(
        (key) => !['models', 'limits', 'secrets', 'server', 'record', 'telemetry'].includes(key),
      ),
      keysOf('server', { server: { no: 1 } }).filter(
        (key) => !['openai', 'responses', 'messages', 'rateLimit'].includes(key),
      ),
      keysOf('record', { record: { no: 1 } }),
    ]
    const telemetry = keysOf('telemetry', { telemetry: { no: 1 } as object }).map((key) => `telemetry.${key}`)
    const models = keysOf('models', { models: { no: 1 } }).map((key) => `models.${key}`)
    const limits = keysOf('limits', { limits: { no: 1 } as object }).map((key) => `limits.${key}`)
    const secrets = keysOf('secrets', { secrets: { no: 1 } }).map((key) => `secrets.${key}`)
    const openai = keysOf(String.raw`server\.openai`, { server: { openai: { no: 1 } as object } }).map(
      (key) => `openai.${key}`,
    )
    const responses = keysOf(String.raw`server\.responses`, { server: { responses: { no: 1 } as object } }).map(
      (key) => `responses.${key}`,
    )
    const messages = keysOf(String.raw`server\.messages`, { server: { messages: { no: 1 } as object } }).map(
      (key) => `messages.${key}`,
    )
    const rate = keysOf(String.raw`server\.rateLimit`, { server: { rateLimit: { no: 1 } as object } }).map(
      (key) => `rateLimit.${key}`,
    )
    const mcp = keysOf(String.raw`server\.mcp`, { server: { mcp: { no: 1 } as object } }).map((key) => `mcp.${key}`)
    expect([...rows.keys()].toSorted()).toEqual(
      [
        ...top,
        ...models,
        ...limits,
        ...secrets,
        ...server,
        ...openai,
        ...responses,
        ...messages,
        ...rate,
        ...mcp,
        ...record,
        ...telemetry,
      ].toSorted(),
    )
    for (const key of keysOf(String.raw`telemetry\.otlp`, {
      telemetry: { otlp: { endpoint: 'http://c', no: 1 } as never },
    })) {
      expect(rows.get('telemetry.otlp')!.line).toContain(`\`${key}\``)
    }
    for (const key of keysOf(String.raw`models\.endpoints\[0\]`, {
      models: { endpoints: [{ name: 'a', baseURL: 'b', no: 1 }] },
    })) {
      expect(rows.get('models.endpoints')!.line).toContain(`\`${key}\``)
    }
  })

  test('the defaults are those of the code', () => {
    const { port, host, data, logFiles } = settingsOf({}, {})
    const told = ['port', 'host', 'data', 'logFiles'].map((key) => rows.get(key)!.second)
    expect(told).toEqual([String(port), `\`${host}\``, `\`${data}\``, String(logFiles)])
  })
})
