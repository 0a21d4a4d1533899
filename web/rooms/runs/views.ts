/** Views of the list that have a name: each is an address. This browser keeps them; who gets the address sees the same. */
export interface SavedView {
  name: string
  /** What follows the `?`. */
  search: string
}

export const viewsName = 'run-views'
const most = 50
const longestName = 60

export function readViews(text: string | undefined): readonly SavedView[] {
  try {
    const found = JSON.parse(text ?? '[]') as unknown
    return Array.isArray(found) ? found.filter(isView).slice(0, most) : []
  } catch {
    return []
  }
}

function isView(value: unknown): value is SavedView {
  const { name, search } = (value ?? {}) as Partial<SavedView>
  return typeof name === 'string' && typeof search === 'string'
}

/** A view of the same name is replaced; the newest is last. */
export function withView(views: readonly SavedView[], name: string, search: string): string {
  const view = { name: name.trim().slice(0, longestName), search: viewOf(search) }
  return JSON.stringify([...views.filter((each) => each.name !== view.name), view].slice(-most))
}

export function withoutView(views: readonly SavedView[], name: string): string | undefined {
  const rest = views.filter((each) => each.name !== name)
  return rest.length === 0 ? undefined : JSON.stringify(rest)
}

/** What of an address is the view: not what is selected in it. */
export function viewOf(search: string): string {
  const query = new URLSearchParams(search)
  query.delete('sel')
  query.sort()
  return query.toString()
}
