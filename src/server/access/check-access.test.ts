import { describe, expect, test } from 'vitest'
import { checkConfig } from '../../project/check-config.ts'
import type { Config } from '../../project/config.ts'
import { endOf } from '../../project/access-values.ts'
import { checkBind, checkKeyAgents } from './check-access.ts'

describe('where a server may listen', () => {
  const bind = (options: Partial<Parameters<typeof checkBind>[1]>) =>
    checkBind('0.0.0.0', { isLocal: false, apiKey: undefined, access: undefined, quotas: undefined, ...options })

  test('without a key and without server.access, on this machine only', () => {
    expect(() => bind({})).toThrow(/Refusing to listen on 0\.0\.0\.0 without a key.*server\.access/u)
    for (const options of [{ isLocal: true }, { apiKey: 'k' }, { access: {} }, { insecureNoAuth: true }]) {
      expect(() => bind(options)).not.toThrow()
    }
  })

  test('browsers without a name need quotas for all of them, except on this machine', () => {
    const access = { anonymous: 'user' as const }
    expect(() => bind({ access })).toThrow('server.access.anonymous: on 0.0.0.0')
    expect(() => bind({ access, apiKey: 'k' })).toThrow('server.quotas')
    // Without its cookie a browser is a new user.
    for (const quotas of [{}, { perUser: { runsPerMinute: 3 } }, { perTenant: {} }])
      expect(() => bind({ access, quotas })).toThrow('server.quotas.perTenant')
    expect(() => bind({ access, quotas: { perTenant: { runsPerMinute: 30 } } })).not.toThrow()
    expect(() => bind({ access, isLocal: true })).not.toThrow()
  })
})

test('agents of keys must exist', () => {
  const keys = [
    { name: 'a', env: 'A', agents: ['helper'] },
    { name: 'b', env: 'B', agents: ['helper', 'helpr'] },
  ]
  expect(() => checkKeyAgents({ keys }, ['helper', 'other'])).toThrow(
    'server.access.keys[1].agents: there is no agent "helpr" (did you mean "helper"?), only helper, other.',
  )
  expect(() => checkKeyAgents({ keys }, ['helper', 'helpr'])).not.toThrow()
})

describe('server.access in the config', () => {
  test.each([
    [
      { keys: [{ name: 'a', env: 'A', role: 'oprator' }] },
      /server\.access\.keys\[0\]\.role must be one of.*did you mean "operator"/u,
    ],
    [{ keys: [{ name: 'a b', env: 'A' }] }, /keys\[0\]\.name must be 1 to 64 letters/u],
    [{ keys: [{ name: 'MILLRACE_API_KEY', env: 'A' }] }, /keys\[0\]\.name must be/u],
    [{ keys: [{ name: 'a' }] }, /keys\[0\]\.env is missing/u],
    [{ keys: [{ name: 'a', env: 'not a name' }] }, /keys\[0\]\.env must be the name of an environment variable/u],
    [{ keys: [{ name: 'a', env: 'A', expires: '30 June' }] }, /keys\[0\]\.expires must be a day such as/u],
    [{ keys: [{ name: 'a', env: 'A', expires: '2027-02-30' }] }, /keys\[0\]\.expires must be a day such as/u],
    [{ keys: [{ name: 'a', env: 'A', agent: ['x'] }] }, /agent is not a known setting \(did you mean "agents"\?\)/u],
    [{ anonymous: 'users' }, /server\.access\.anonymous must be one of none, user.*did you mean "user"/u],
    [{ authenticate: 'yes' }, /server\.access\.authenticate must be a function/u],
    [{ claims: ['plan', ''] }, /server\.access\.claims\[1\] must be/u],
    [{ anonimous: 'user' }, /server\.access\.anonimous is not a known setting \(did you mean "anonymous"\?\)/u],
  ])('%o is refused with its place', (access, message) => {
    expect(() => checkConfig({ server: { access } } as unknown as Config)).toThrow(message)
  })

  test('a day counts to its end', () => {
    expect(endOf('2027-06-30')).toBe(Date.parse('2027-07-01T00:00:00Z') - 1)
    expect(endOf('2027-06-30T12:00:00+02:00')).toBe(Date.parse('2027-06-30T10:00:00Z'))
    expect(endOf('06/30/2027')).toBeUndefined()
    expect(endOf('7')).toBeUndefined()
  })
})
