/** How long one socket may read: until its credential ends, unless the client sends another one of the same user before that. */
import { MillraceError, toErrorValue, type ErrorValue } from '../../part/error.ts'
import { isSameOwner, type Principal } from '../../part/principal.ts'
import type { Access } from '../access/access.ts'

export interface SocketAccess {
  /** Calls back once when the socket's access ends. Returns a function that stops waiting. */
  onExpired(end: (error: ErrorValue) => void): () => void
  /** Goes on with another credential. Throws `forbidden` if it is of somebody else, or has other roles: open a new socket for those. */
  renew(principal: Principal): void
  close(): void
}

/** `over` is called behind all others. */
export function createSocketAccess(access: Access, first: Principal, over: () => void): SocketAccess {
  const ends = new Set<(error: ErrorValue) => void>()
  const wait = (principal: Principal) =>
    access.onExpired(principal, (error) => {
      for (const end of ends) end(toErrorValue(error))
      over()
    })
  let forget = wait(first)
  return {
    onExpired(end) {
      ends.add(end)
      return () => void ends.delete(end)
    },
    renew(principal) {
      const isSame = isSameOwner(principal, first) && principal.roles.join() === first.roles.join()
      if (!isSame) {
        const cure = 'Open another socket for another user.'
        throw new MillraceError('forbidden', `This token is of another user, or has other roles. ${cure}`)
      }
      const before = forget
      forget = wait(principal)
      before()
    },
    close() {
      forget()
      ends.clear()
    },
  }
}
