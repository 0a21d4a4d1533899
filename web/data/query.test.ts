import { expect, test } from 'vitest'
import { withChanges } from './query.ts'

test('changes some parameters and keeps the others', () => {
  expect(withChanges('/runs', '?q=a%20b&status=failed', { status: 'failed,aborted', q: undefined })).toBe(
    '/runs?status=failed,aborted',
  )
  expect(withChanges('/runs/r', '', { sel: 'main/answer/1', z: '0-5' })).toBe('/runs/r?sel=main/answer/1&z=0-5')
  expect(withChanges('/runs', '?q=x', { q: '' })).toBe('/runs')
})
