/** Which of the keys of one name a principal came with. Its principals are equal before and after a rotation, so it is not in them. */
import type { Principal } from '../../part/principal.ts'

const numbers = new WeakMap<Principal, number>()

export function noteKeyNumber(principal: Principal, n: number): Principal {
  numbers.set(principal, n)
  return principal
}

/** Undefined for all that did not come with a stored key. */
export function keyNumberOf(principal: Principal): number | undefined {
  return numbers.get(principal)
}
