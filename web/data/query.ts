/** The state of a room in its URL. */
import { useCallback } from 'react'
import { useLocation, useSearch } from 'wouter'

export interface Query {
  get(name: string): string | undefined
  /** Changes parameters; `undefined` removes one. `replace` (for dragging and typing) adds no step to the history. */
  set(changes: Record<string, string | undefined>, options?: { replace?: boolean }): void
}

export function useQuery(): Query {
  const search = useSearch()
  const [, navigate] = useLocation()
  const get = useCallback((name: string) => new URLSearchParams(search).get(name) ?? undefined, [search])
  const set = useCallback<Query['set']>(
    (changes, { replace = false } = {}) =>
      navigate(withChanges(location.pathname, location.search, changes), { replace }),
    [navigate],
  )
  return { get, set }
}

/** A path with parameters changed. `~`, `,`, `:` and `/` stay readable. */
export function withChanges(path: string, search: string, changes: Record<string, string | undefined>): string {
  const query = new URLSearchParams(search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') query.delete(name)
    else query.set(name, value)
  }
  const text = queryText(query)
  return text === '' ? path : `${path}?${text}`
}

/** A query as it stands in the address, without its `?`. */
export function queryText(query: URLSearchParams): string {
  return query.toString().replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll('%2F', '/').replaceAll('%7E', '~')
}
