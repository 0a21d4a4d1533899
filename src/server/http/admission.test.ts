import { expect, test } from 'vitest'
import { createLimits } from '../../store/limits.ts'
import { anyone } from '../../part/principal.ts'
import { createAdmission, createCallerOf } from './admission.ts'

const from = (address: string) => ({ principal: anyone, address })

test('a start that is too many names who started, the limit and the seconds to wait', async () => {
  const limits = createLimits(() => 0)
  const admission = createAdmission({ limits, runsPerMinute: 3, callerOf: createCallerOf(undefined) })
  const starts = async (address: string) => (await admission.start(from(address)))?.message
  for (let i = 0; i < 3; i++) expect(await starts('a')).toBeUndefined()
  expect(await starts('b')).toBeUndefined()
  expect(await admission.start(from('a'))).toMatchObject({
    code: 'rate-limited',
    status: 429,
    retryAfter: 20,
    message: 'Too many runs were started from a. The limit is 3 runs per minute. Try again in 20 seconds.',
  })
})

test('with a key, all who know it are one caller', async () => {
  const admission = createAdmission({ limits: createLimits(), runsPerMinute: 1, callerOf: createCallerOf('0a1b2c') })
  expect(await admission.start(from('a'))).toBeUndefined()
  expect((await admission.start(from('b')))?.message).toMatch(/^Too many runs were started with this key\./u)
})

test('without limits nothing is asked of the store', async () => {
  const asked = () => Promise.reject(new Error('asked'))
  const admission = createAdmission({ limits: { take: asked, occupy: asked }, callerOf: createCallerOf(undefined) })
  expect(await admission.start(from('a'))).toBeUndefined()
  expect(await admission.stream(from('a'))).not.toBeInstanceOf(Error)
})

test('each user is a caller, wherever it comes from', async () => {
  const admission = createAdmission({ limits: createLimits(), runsPerMinute: 1, callerOf: createCallerOf('0a1b2c') })
  const by = (id: string, address: string) => admission.start({ principal: { id, roles: ['user'] }, address })
  expect(await by('u1', 'a')).toBeUndefined()
  expect(await by('u2', 'a')).toBeUndefined()
  expect((await by('u1', 'b'))?.message).toMatch(/^Too many runs were started by u1\./u)
})
