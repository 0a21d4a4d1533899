import { describe, expect, test } from 'vitest'
import { mayAnswer, mayDelete, type SignedIn } from './server.ts'

const person = (role: SignedIn['role'], may: string[] = ['runs.delete']): SignedIn => ({ id: 'olga', role, may })

describe('mayDelete', () => {
  test('everything on a server that does not ask', () => expect(mayDelete(undefined, 'alice')).toBe(true))
  test('an operator: its own', () => {
    expect(['olga', 'alice', undefined].map((owner) => mayDelete(person('operator'), owner))).toEqual([
      true,
      false,
      false,
    ])
    expect(mayDelete({ ...person('operator'), id: '' }, '')).toBe(false)
  })
  test('an admin: all; a user: what it sees', () => {
    expect([mayDelete(person('admin'), 'alice'), mayDelete(person('user'), undefined)]).toEqual([true, true])
  })
  test('nothing without the action', () => expect(mayDelete(person('admin', []), 'olga')).toBe(false))
})

test('mayAnswer', () => {
  const byOperator = { roles: ['operator'] as const }
  const roles = ['user', 'operator', 'admin'] as const
  expect(roles.map((role) => mayAnswer(person(role), byOperator))).toEqual([false, true, true])
  expect([mayAnswer(undefined, byOperator), mayAnswer(person('user'), {})]).toEqual([true, true])
})
