/**
 * A long list that changes while it is read: pages from the server, newest first, and rows as they change. Known rows change in their
 * place. New rows wait until the reader asks for them, unless the reader is at the top.
 */
export interface Listed {
  id: string
}

export interface LiveList<T extends Listed> {
  rows: readonly T[]
  /** New rows that are not shown yet, newest first. */
  waiting: readonly T[]
  /** So many rows have come that not all wait here: to show them, load the list again. */
  isOutrun: boolean
  /** The server has older ones. */
  hasMore: boolean
}

export interface ListRules<T> {
  /** Whether a new row belongs to the list. */
  isWanted(row: T): boolean
  /** The order of the list. */
  compare(a: T, b: T): number
  /** What a row is sorted by changes: while the reader is at the top, a row that has changed goes to its place. */
  moves?: boolean
}

/** New rows that wait at most, and rows that are kept at most. */
const mostWaiting = 200
const mostRows = 20_000

export function firstPage<T extends Listed>(rows: readonly T[], pageSize: number): LiveList<T> {
  return { rows, waiting: [], isOutrun: false, hasMore: rows.length >= pageSize }
}

export function withPage<T extends Listed>(list: LiveList<T>, page: readonly T[], pageSize: number): LiveList<T> {
  const known = new Set(list.rows.map(({ id }) => id))
  const fresh = page.filter(({ id }) => !known.has(id))
  // Rows that waited may stand on a page that has come since.
  const shown = new Set(page.map(({ id }) => id))
  const waiting = list.waiting.filter(({ id }) => !shown.has(id))
  return { ...list, rows: [...list.rows, ...fresh], waiting, hasMore: page.length >= pageSize }
}

/** Rows that have changed. `isAtTop`: new ones are shown at once. */
export function withChanges<T extends Listed>(
  list: LiveList<T>,
  changed: readonly T[],
  rules: ListRules<T>,
  isAtTop: boolean,
): LiveList<T> {
  const latest = new Map(changed.map((row) => [row.id, row]))
  const rows = replaced(list.rows, latest)
  const isMoved = rules.moves === true && isAtTop && rows !== list.rows
  const next = {
    ...list,
    rows: isMoved ? rows.toSorted(rules.compare) : rows,
    waiting: replaced(list.waiting, latest),
  }
  const last = list.rows.at(-1)
  const isPaged = (row: T) => list.hasMore && last !== undefined && rules.compare(row, last) > 0
  const fresh = [...latest.values()].filter((row) => rules.isWanted(row) && !isPaged(row))
  if (fresh.length === 0) return next
  const waiting = [...next.waiting, ...fresh].sort(rules.compare)
  if (isAtTop && !next.isOutrun) return shown({ ...next, waiting }, rules)
  return { ...next, waiting: waiting.slice(0, mostWaiting), isOutrun: next.isOutrun || waiting.length > mostWaiting }
}

/** Shows the rows that wait. */
export function shown<T extends Listed>(list: LiveList<T>, rules: ListRules<T>): LiveList<T> {
  const rows = merged(list.waiting, list.rows, rules.compare)
  const isCut = rows.length > mostRows
  return { rows: isCut ? rows.slice(0, mostRows) : rows, waiting: [], isOutrun: false, hasMore: list.hasMore || isCut }
}

export function without<T extends Listed>(list: LiveList<T>, id: string): LiveList<T> {
  const rest = (rows: readonly T[]) => rows.filter((row) => row.id !== id)
  return { ...list, rows: rest(list.rows), waiting: rest(list.waiting) }
}

export function patched<T extends Listed>(list: LiveList<T>, id: string, changes: Partial<T>): LiveList<T> {
  const next = (rows: readonly T[]) => rows.map((row) => (row.id === id ? { ...row, ...changes } : row))
  return { ...list, rows: next(list.rows), waiting: next(list.waiting) }
}

/** The rows with the latest of each. Takes what it finds out of `latest`. */
function replaced<T extends Listed>(rows: readonly T[], latest: Map<string, T>): readonly T[] {
  if (!rows.some(({ id }) => latest.has(id))) return rows
  return rows.map((row) => {
    const found = latest.get(row.id)
    if (found !== undefined) latest.delete(row.id)
    return found ?? row
  })
}

/** Both are sorted. */
function merged<T>(a: readonly T[], b: readonly T[], compare: (a: T, b: T) => number): T[] {
  const all: T[] = []
  let at = 0
  for (const row of b) {
    while (at < a.length && compare(a[at]!, row) <= 0) all.push(a[at++]!)
    all.push(row)
  }
  return [...all, ...a.slice(at)]
}
