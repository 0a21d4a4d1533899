import { describe, expect, test } from 'vitest'
import { MillraceError } from '../part/error.ts'
import { lostError } from './runtime-errors.ts'

describe('errors of lost runs', () => {
  test('what a store says of itself reaches no reader', () => {
    for (const code of ['store-failed', 'stale-writer']) {
      const told = lostError(new MillraceError(code, 'cannot open /srv/data/millrace.db'))
      expect(told).toEqual({ code, message: 'The run could not be recorded.' })
    }
    expect(lostError(new Error('EIO /srv/data'))).toEqual({
      code: 'store-failed',
      message: 'The run could not be recorded.',
    })
  })
})
