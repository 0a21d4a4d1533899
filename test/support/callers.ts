/** Callers of every kind, by their tokens, for tests of who may do what. */
import { MillraceError } from '../../src/part/error.ts'
import type { Principal } from '../../src/part/principal.ts'
import type { Access } from '../../src/server/access/access.ts'

export const callers = {
  alice: { id: 'alice', tenant: 'acme', roles: ['user'] },
  bob: { id: 'bob', tenant: 'acme', roles: ['user'] },
  /** The same name, in another tenant. */
  'alice of beta': { id: 'alice', tenant: 'beta', roles: ['user'] },
  operator: { id: 'olga', tenant: 'acme', roles: ['operator'] },
  'operator of beta': { id: 'otto', tenant: 'beta', roles: ['operator'] },
  'admin of acme': { id: 'anna', tenant: 'acme', roles: ['admin'] },
  admin: { id: '', roles: ['admin'], key: 'MILLRACE_API_KEY' },
  /** A key of alice's tenant for another agent. */
  'other agents': { id: 'key:ci', key: 'ci', tenant: 'acme', roles: ['operator'], agents: ['other'] },
} as const satisfies Record<string, Principal>

export type Caller = keyof typeof callers | 'no one' | 'expired'

export const everyone: readonly Caller[] = ['no one', 'expired', ...(Object.keys(callers) as (keyof typeof callers)[])]

export function tokenOf(caller: Caller): string {
  return caller.replaceAll(' ', '-')
}

export function headersFor(caller: Caller): Record<string, string> {
  return caller === 'no one' ? {} : { authorization: `Bearer ${tokenOf(caller)}` }
}

export interface TestAccess extends Access {
  /** Ends what the caller reads, as when its key is revoked. */
  expire(caller: keyof typeof callers): void
}

/** Knows callers by their tokens. */
export function createTestAccess(): TestAccess {
  const byToken = new Map<string, Principal>(
    Object.entries(callers).map(([name, principal]) => [`Bearer ${tokenOf(name as Caller)}`, principal]),
  )
  // A second token of the same user.
  byToken.set('Bearer alice-2', { ...callers.alice })
  const waiting = new Map<Principal, Set<(error: MillraceError) => void>>()
  return {
    identify({ headers }) {
      const principal = byToken.get(headers.get('authorization') ?? '')
      if (principal !== undefined) return principal
      throw new MillraceError('unauthorized', 'Send a key or a token that counts.', { status: 401 })
    },
    onExpired(principal, end) {
      const ends = waiting.get(principal) ?? new Set()
      waiting.set(principal, ends.add(end))
      return () => void ends.delete(end)
    },
    expire(caller) {
      const principal: Principal = callers[caller]
      byToken.delete(`Bearer ${tokenOf(caller)}`)
      for (const end of waiting.get(principal) ?? []) {
        end(new MillraceError('unauthorized', 'Your access has ended.', { status: 401 }))
      }
    },
    ways: { key: true, login: false, anonymous: false },
    readsCookies: false,
    close: () => undefined,
  }
}
