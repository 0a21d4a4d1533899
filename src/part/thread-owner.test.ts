import { describe, expect, test } from 'vitest'
import { plainThread, scopedThread, threadOwner } from './principal.ts'

describe('threadOwner', () => {
  test.each([
    { id: 'u1' },
    { id: 'u1', tenant: 'acme' },
    { id: 'a/b@@c', tenant: 'ü/x' },
    { id: '%', tenant: '@@' },
    { id: 'key:ci', tenant: 'acme' },
  ])('%j is found again in the id of its thread', (owner) => {
    const id = scopedThread('a@@b', owner)
    expect(threadOwner(id)).toEqual(owner)
    expect(plainThread(id)).toBe('a@@b')
  })

  test.each(['1', '@@u1', '1@@', '1@@a/b/c', '1@@%E0%A4%A'])('%s has none', (id) =>
    expect(threadOwner(id)).toBeUndefined(),
  )
})
