import { expect, test } from 'vitest'
import type { SignedIn } from '../data/server.ts'
import { personOf } from './person-of.ts'

test.each<[Partial<SignedIn>, ReturnType<typeof personOf>]>([
  [
    { id: '', key: 'MILLRACE_API_KEY', role: 'admin' },
    { name: 'Admin key', about: ['The key of this server'], isGuest: false },
  ],
  [{ id: 'u1' }, { name: 'u1', about: ['User'], isGuest: false }],
  [
    { id: 'u1', name: 'Olga', tenant: 'acme', role: 'operator' },
    { name: 'Olga', about: ['u1', 'Operator', 'Tenant acme'], isGuest: false },
  ],
  [
    { id: 'key:ci', key: 'ci', role: 'admin' },
    { name: 'ci', about: ['Admin, with a key'], isGuest: false },
  ],
  [{ id: 'anonymous:1a2b' }, { name: 'Guest', about: ['Only this browser sees its runs'], isGuest: true }],
])('%j', (user, shown) => expect(personOf({ id: '', role: 'user', may: [], ...user })).toEqual(shown))
