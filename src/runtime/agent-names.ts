/** The names of agents: ids and aliases. An alias may have `*`, for any text: clients ask for models by names of their own. */

/** The value of this name. A name itself comes before an alias with `*`; of several of these, the one with the most other characters counts. */
export function findByName<T>(names: ReadonlyMap<string, T>, name: string): T | undefined {
  const exact = names.get(name)
  if (exact !== undefined && !isPattern(name)) return exact
  let best: { pattern: string; value: T } | undefined
  for (const [pattern, value] of names) {
    if (!isPattern(pattern) || !matches(pattern, name)) continue
    if (best === undefined || fixed(pattern) > fixed(best.pattern)) best = { pattern, value }
  }
  return best?.value
}

/** Whether an alias stands for many names. It is in no list of them. */
export function isPattern(name: string): boolean {
  return name.includes('*')
}

function fixed(pattern: string): number {
  return pattern.replaceAll('*', '').length
}

/** Piece by piece, because a regular expression with several `.*` takes exponential time. */
function matches(pattern: string, name: string): boolean {
  const pieces = pattern.split('*')
  const first = pieces[0]!
  const last = pieces.at(-1)!
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false
  let at = first.length
  const end = name.length - last.length
  for (const piece of pieces.slice(1, -1)) {
    const found = name.indexOf(piece, at)
    if (found < 0 || found + piece.length > end) return false
    at = found + piece.length
  }
  return at <= end
}
