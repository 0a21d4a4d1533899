import { describe, expect, test } from 'vitest'
import { MillraceError } from '../part/error.ts'
import type { Ledger } from '../part/ledger.ts'
import { anyone, type Principal } from '../part/principal.ts'
import type { QuotasConfig } from '../part/quota.ts'
import { createLedger } from '../store/ledger.ts'
import { createLimits } from '../store/limits.ts'
import { bookOf, sumKey, windowOf, type QuotaWindow } from './quota-windows.ts'
import { createQuotas } from './quotas.ts'

const user: Principal = { id: 'u1', tenant: 'acme', key: 'ci', roles: ['user'] }
const other: Principal = { ...user, id: 'u2', key: 'cd' }
/** In the middle of a minute of the last day of a month. */
const noon = Date.UTC(2026, 0, 31, 12, 0, 30)

function open(config: QuotasConfig, given: { ledger?: Ledger } = {}) {
  const clock = { now: noon }
  const now = () => clock.now
  const ledger = given.ledger ?? createLedger(now)
  const refused: string[] = []
  const onRefused = (what: string) => void refused.push(what)
  const quotas = createQuotas({ config, ledger, limits: createLimits(now), now, onRefused })
  const use = (window: QuotaWindow, amount: number, holder = 'user:u1', unit: 'tokens' | 'usd' = 'tokens') => {
    const { start, end } = windowOf(window, clock.now)
    const key = sumKey({ name: 'streams', unit, window }, start, holder)
    return ledger.add(bookOf(user), [{ key, amount, until: end }])
  }
  return { quotas, clock, ledger, refused, use, admit: (principal = user) => quotas.admitStart(principal) }
}

describe('admitStart', () => {
  test.each<[string, QuotaWindow, number]>([
    ['tokensPerMinute', 'minute', 30],
    ['tokensPerDay', 'day', 12 * 3600 - 30],
    ['tokensPerMonth', 'month', 12 * 3600 - 30],
  ])('refuses a start when %s are used up, until the window ends', async (name, window, seconds) => {
    const { admit, clock, use, refused } = open({ perUser: { [name]: 10 } })
    await use(window, 9)
    expect(await admit()).toBeUndefined()
    await use(window, 1)
    const error = await admit()
    expect(error).toMatchObject({ code: 'quota-exceeded', status: 429, which: `perUser.${name}`, retryAfter: seconds })
    expect(error!.message).toContain(`perUser.${name} (10 tokens per ${window}`)
    expect(refused).toEqual(['start'])
    // Other users have their own.
    expect(await admit(other)).toBeUndefined()
    clock.now += seconds * 1000
    expect(await admit()).toBeUndefined()
  })

  test('says the quota that is used up for the longest, of the user, the tenant and the key', async () => {
    const { admit, use } = open({
      perUser: { tokensPerMinute: 5 },
      perTenant: { tokensPerDay: 5, usdPerMonth: 0.5 },
      perKey: { tokensPerMinute: 5 },
    })
    await use('minute', 5)
    expect(await admit()).toMatchObject({ which: 'perUser.tokensPerMinute' })
    await use('day', 5, 'tenant')
    expect(await admit()).toMatchObject({ which: 'perTenant.tokensPerDay' })
    expect(await admit(other)).toMatchObject({ which: 'perTenant.tokensPerDay' })
    expect(await admit({ ...other, tenant: 'umbrella' })).toBeUndefined()
    await use('minute', 5, 'key:cd')
    await use('day', -1, 'tenant')
    expect(await admit(other)).toMatchObject({ which: 'perKey.tokensPerMinute' })
  })

  test('limits how often a user, a tenant and a key start', async () => {
    const { admit, clock } = open({ perUser: { runsPerMinute: 2 }, perTenant: { runsPerMinute: 3 } })
    expect([await admit(), await admit()]).toEqual([undefined, undefined])
    const error = await admit()
    expect(error).toMatchObject({ code: 'quota-exceeded', which: 'perUser.runsPerMinute', retryAfter: 30 })
    expect(error!.message).toBe(
      'A quota is used up: perUser.runsPerMinute (2 runs per minute). Try again in 30 seconds.',
    )
    expect(await admit(other)).toBeUndefined()
    expect(await admit(other)).toMatchObject({ which: 'perTenant.runsPerMinute', retryAfter: 20 })
    expect(await admit({ ...user, tenant: 'umbrella' })).toBeUndefined()
    clock.now += 60_000
    expect(await admit()).toBeUndefined()
  })

  test('knows at once what another process has counted; admits all while the ledger fails, and the server itself', async () => {
    const one = open({ perUser: { tokensPerDay: 10 } })
    const two = open({ perUser: { tokensPerDay: 10 } }, { ledger: one.ledger })
    expect(await two.admit()).toBeUndefined()
    await one.use('day', 10)
    expect(await two.admit()).toMatchObject({ code: 'quota-exceeded' })
    expect(await two.admit(anyone)).toBeUndefined()
    const fails = () => Promise.reject(new MillraceError('store-failed', 'away'))
    const away = open({ perUser: { tokensPerDay: 10 } }, { ledger: { add: fails, read: fails, mark: fails } })
    expect(await away.admit()).toBeUndefined()
  })
})

describe('occupyStream', () => {
  test('refuses one too many of a user, a tenant or a key, and leaves no place behind', async () => {
    const { quotas, refused } = open({ perUser: { streams: 2 }, perTenant: { streams: 3 } })
    const places = await Promise.all([user, user, other].map((each) => quotas.occupyStream(each)))
    expect(places.filter((each) => each instanceof Error)).toEqual([])
    expect(await quotas.occupyStream(user)).toMatchObject({
      code: 'too-many-streams',
      status: 429,
      which: 'perUser.streams',
      retryAfter: 5,
    })
    for (let i = 0; i < 5; i++) expect(await quotas.occupyStream(other)).toMatchObject({ which: 'perTenant.streams' })
    expect(refused).toHaveLength(6)
    for (const place of places) if (!(place instanceof Error)) place.leave()
    // A refusal by the tenant gave the user's place back.
    const again = await Promise.all([other, other].map((each) => quotas.occupyStream(each)))
    expect(again.filter((each) => each instanceof Error)).toEqual([])
    expect(await quotas.occupyStream(anyone)).not.toBeInstanceOf(Error)
  })
})

describe('usesOf', () => {
  test('has the quotas of a principal, with what is used and when it begins anew', async () => {
    const { quotas, use } = open({ perUser: { streams: 5, usdPerMonth: 2 }, perKey: { runsPerMinute: 3 } })
    await use('month', 500_000_000, 'user:u1', 'usd')
    expect(await quotas.usesOf(user)).toEqual([
      { which: 'perKey.runsPerMinute', limit: 3 },
      { which: 'perUser.streams', limit: 5 },
      { which: 'perUser.usdPerMonth', limit: 2, used: 0.5, resetsAt: Date.UTC(2026, 1, 1) },
    ])
    expect(await quotas.usesOf(anyone)).toEqual([])
    expect(await quotas.usesOf({ id: 'u3', roles: ['user'] })).toMatchObject([
      { which: 'perUser.streams' },
      { used: 0 },
    ])
  })

  test('a user does not see what its tenant has used, an operator does', async () => {
    const { quotas, use } = open({ perTenant: { tokensPerDay: 10 } })
    await use('day', 4, 'tenant')
    const { end: resetsAt } = windowOf('day', noon)
    const seen = { which: 'perTenant.tokensPerDay', limit: 10, resetsAt }
    expect(await quotas.usesOf(user)).toEqual([seen])
    expect(await quotas.usesOf({ ...user, roles: ['operator'] })).toEqual([{ ...seen, used: 4 }])
  })
})
