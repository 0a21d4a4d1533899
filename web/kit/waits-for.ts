import type { RequestPart } from '../../src/part/request-part.ts'

const people = { user: 'a user', operator: 'an operator', admin: 'an admin' }

/** Who must answer an approval that needs a role. */
export function waitsFor({ roles = [] }: Pick<RequestPart, 'roles'>): string {
  return `Waits for ${roles.map((role) => people[role]).join(' or ')}.`
}
