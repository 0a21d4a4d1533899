import type { SignedIn } from '../data/server.ts'

const roleWords = { user: 'User', operator: 'Operator', admin: 'Admin' }

/** The words for whoever is signed in. `isGuest`: a browser that the server has let in without a name. */
export function personOf({ id, name, tenant, key, role }: SignedIn): {
  name: string
  about: string[]
  isGuest: boolean
} {
  if (id === '') return { name: 'Admin key', about: ['The key of this server'], isGuest: false }
  const isGuest = id.startsWith('anonymous:')
  const shown = isGuest ? 'Guest' : (name ?? key ?? id)
  const about = [
    ...(name !== undefined && key === undefined && !isGuest ? [id] : []),
    key === undefined ? roleWords[role] : `${roleWords[role]}, with a key`,
    ...(tenant === undefined ? [] : [`Tenant ${tenant}`]),
  ]
  return { name: shown, about: isGuest ? ['Only this browser sees its runs'] : about, isGuest }
}
