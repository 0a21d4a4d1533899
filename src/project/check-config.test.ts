import { describe, expect, test } from 'vitest'
import { checkConfig } from './check-config.ts'
import { createRuntime } from './create-runtime.ts'

const endpoint = { name: 'box', baseURL: 'http://localhost:1/v1' }
const faultsOf = (config: unknown): string => {
  try {
    checkConfig(config as object)
    return ''
  } catch (error) {
    expect(error).toMatchObject({ code: 'bad-config' })
    return (error as Error).message
  }
}

describe('checkConfig', () => {
  test('what every key may be; what is undefined is left out', () => {
    const good = {
      tools: {},
      callbacks: { saved: () => undefined },
      steps: undefined,
      packs: [],
      models: {
        default: 'box:m',
        endpoints: [endpoint, { ...endpoint, name: 'other', apiKeyEnv: 'OTHER_KEY', protocol: 'anthropic' }],
        providers: {},
        decoder: 'package',
      },
      env: ['REGION'],
      secrets: { names: ['HOOK'], values: ['from-the-vault'], keys: ['password', 'api_key'] },
      mcpServers: {},
      pricing: { 'box:m': { input: 0, output: 1.5 } },
      limits: { lineBytes: 1, bodyBytes: 1, answerChars: 1, toolCalls: 1 },
      requestDeadlineMs: 1000,
      closeThreadsAfterMs: 86_400_000,
      server: {
        mcp: false,
        port: 0,
        host: '::1',
        maxBodyBytes: 1,
        keepAliveMs: 1,
        graceMs: 0,
        stopGraceMs: 0,
        allowedOrigins: ['https://app.example', 'http://localhost:5173'],
        rateLimit: { runsPerMinute: 1 },
        access: {
          jwt: { issuer: 'https://id.example/', audience: 'millrace', jwks: 'http://127.0.0.1:1/jwks', roles: 'a.b' },
          login: {
            issuer: 'http://localhost:1',
            clientId: 'page',
            secretEnv: 'S',
            scope: 'openid',
            url: 'https://a.b',
          },
        },
        quotas: {
          perUser: { runsPerMinute: 30, streams: 5, tokensPerDay: 200_000, usdPerMonth: 20 },
          perTenant: { tokensPerMinute: 1, tokensPerMonth: 1, usdPerMinute: 0.01, usdPerDay: 1e6 },
          perKey: {},
        },
      },
      record: { data: 'none', logFiles: false, busyTimeoutMs: 0 },
    }
    expect(faultsOf(good)).toBe('')
    expect(faultsOf({})).toBe('')
  })

  test.each<[object, string]>([
    [{ tool: {} }, 'tool is not a known setting (did you mean "tools"?). Settings: tools, callbacks, steps,'],
    [
      { server: { quotas: { perUsers: {} } } },
      'server.quotas.perUsers is not a known setting (did you mean "perUser"?). Settings of server.quotas: perUser, perTenant, perKey.',
    ],
    [
      { server: { quotas: { perKey: { tokenPerDay: 5 } } } },
      'server.quotas.perKey.tokenPerDay is not a known setting (did you mean "tokensPerDay"?). Settings of server.quotas.perKey: runsPerMinute, streams,',
    ],
    [
      {
        server: {
          quotas: { perUser: { streams: 0, tokensPerDay: 1.5, usdPerDay: 0 }, perTenant: { usdPerMonth: '5' } },
        },
      },
      `server.quotas.perUser.streams must be a whole number from 1 to 1000000, not 0.
server.quotas.perUser.tokensPerDay must be a whole number from 1 to 9007199254740991, not 1.5.
server.quotas.perUser.usdPerDay must be an amount in USD, more than 0 and at most 1000000, not 0.
server.quotas.perTenant.usdPerMonth must be an amount in USD, more than 0 and at most 1000000, not the string "5".`,
    ],
    [
      { server: { prot: 1 } },
      'server.prot is not a known setting (did you mean "port"?). Settings of server: port, host, maxBodyBytes,',
    ],
    [
      { server: { access: { jwt: { issuer: 'https://id.example', audience: 'm', role: 'r' } } } },
      'server.access.jwt.role is not a known setting (did you mean "roles"?). Settings of server.access.jwt: user, tenant, roles, issuer, audience, jwks.',
    ],
    [{ server: { access: { jwt: { issuer: 'https://id.example' } } } }, 'server.access.jwt.audience is missing.'],
    [
      { server: { access: { login: { issuer: 'http://id.example', clientId: 'c' } } } },
      'server.access.login.issuer must be a URL with https (http for this machine only), not the string "http://id.example".',
    ],
    [
      { server: { access: { login: { issuer: 'https://id.example', clientId: 'c', scope: 'profile' } } } },
      'server.access.login.scope must be scopes with "openid" among them, separated by spaces, not the string "profile".',
    ],
    [
      { server: { access: { login: { issuer: 'https://id.example', clientId: 'c', secretEnv: 'not-a-name' } } } },
      'server.access.login.secretEnv must be the name of an environment variable that holds the secret, never the secret itself.',
    ],
    [
      { record: { datadir: 'x' } },
      'record.datadir is not a known setting. Settings of record: store, data, logFiles, busyTimeoutMs, compactAfter, archive, archiveAfter, retention.',
    ],
    [
      { server: { mcp: { taskafter: '1s' } } },
      'server.mcp.taskafter is not a known setting (did you mean "taskAfter"?). Settings of server.mcp: taskAfter, agents, onCancel, clientTools.',
    ],
    [{ server: { mcp: { taskAfter: 'soon' } } }, 'server.mcp.taskAfter must be a duration such as "30d"'],
    [{ server: { mcp: { onCancel: 'waits' } } }, 'one of deny, wait, not the string "waits" (did you mean "wait"?)'],
    [{ server: { mcp: true } }, 'server.mcp must be an object'],
    [{ server: [] }, 'server must be an object.'],
    [{ secrets: { keys: 'password' } }, 'secrets.keys must be a list.'],
    [{ secrets: { keys: ['password', '_'] } }, 'secrets.keys[1] must be the name of a key, not the string "_".'],
    [{ tools: [] }, 'tools must be an object keyed by name, not a list.'],
    [{ packs: {} }, 'packs must be a list of modules, not an object.'],
    [{ server: { port: '8080' } }, 'server.port must be a whole number from 0 to 65535, not the string "8080".'],
    [{ server: { port: 65_536 } }, 'server.port must be a whole number from 0 to 65535, not 65536.'],
    [{ server: { port: 1.5 } }, 'not 1.5.'],
    [{ server: { host: '' } }, 'server.host must be a non-empty string, not the string "".'],
    [{ server: { keepAliveMs: 0 } }, 'server.keepAliveMs must be a whole number from 1 to 2147483647, not 0.'],
    [{ server: { graceMs: Infinity } }, 'server.graceMs must be a whole number'],
    [{ server: { allowedOrigins: ['*'] } }, 'server.allowedOrigins[0] must be an origin such as "https://app.example"'],
    [{ server: { allowedOrigins: ['https://app.example/'] } }, 'server.allowedOrigins[0] must be an origin'],
    [{ server: { allowedOrigins: 'https://app.example' } }, 'server.allowedOrigins must be a list.'],
    [{ server: { rateLimit: {} } }, 'server.rateLimit.runsPerMinute is missing.'],
    [
      { server: { rateLimit: { runsPerMinute: 0.5 } } },
      'runsPerMinute must be a whole number from 1 to 1000000, not 0.5.',
    ],
    [{ record: { logFiles: 'yes' } }, 'record.logFiles must be true or false, not the string "yes".'],
    [{ models: { endpoints: [{ name: 'box' }] } }, 'models.endpoints[0].baseURL is missing.'],
    [
      { models: { endpoints: [{ ...endpoint, protocol: 'antropic' }] } },
      'models.endpoints[0].protocol must be one of openai-chat, openai-responses, anthropic, google, not the string "antropic" (did you mean "anthropic"?).',
    ],
    [{ pricing: { m: { input: 1 } } }, 'pricing["m"].output is missing.'],
    [
      { pricing: { m: { input: '1', output: 1 } } },
      'pricing["m"].input must be an amount in USD from 0, not the string "1".',
    ],
    [{ timeouts: { idle: 0 } }, 'timeouts.idle must be a whole number of ms from 1, or "none", not 0.'],
    [
      { timeouts: { run: 'never' } },
      'timeouts.run must be a whole number of ms from 1, or "none", not the string "never".',
    ],
    [
      { pricing: { m: { input: Infinity, output: 1 } } },
      'pricing["m"].input must be an amount in USD from 0, not Infinity.',
    ],
    [{ requestDeadlineMs: -1 }, 'requestDeadlineMs must be a whole number'],
    [
      { models: { decoder: 'packge' } },
      'models.decoder must be one of millrace, package, not the string "packge" (did you mean "package"?).',
    ],
    [{ constructor: {} }, 'constructor is not a known setting'],
  ])('%j is refused by its name', (config, message) => {
    expect(faultsOf(config)).toContain(message)
  })

  test('everything that is wrong is said at once', () => {
    expect(faultsOf({ server: { port: -1, hots: 'x' }, record: 7 }).split('\n')).toEqual([
      expect.stringContaining('server.port'),
      expect.stringContaining('server.hots is not a known setting (did you mean "host"?)'),
      'record must be an object.',
    ])
  })

  test('a key or a password that stands where it should not is not repeated', () => {
    const given = { name: 'box', baseURL: 7, apiKeyEnv: 'sk-live-secret' }
    const message = faultsOf({ models: { endpoints: [given] } })
    expect(message).toContain('apiKeyEnv must be the name of an environment variable that holds the key')
    expect(message).not.toContain('sk-live')
  })

  test('createRuntime refuses the same', () => {
    const options = { agents: {}, modles: {} }
    expect(() => createRuntime(options)).toThrow('modles is not a known setting (did you mean "models"?)')
  })
})
