/**
 * Which of these media types the request names first choice in `Accept`: by weight, then by its own order. Undefined when it
 * names none of them; a wildcard names none, and what has the weight 0 is refused.
 */
export function preferredType<T extends string>({ headers }: Request, types: readonly T[]): T | undefined {
  let best: T | undefined
  let most = 0
  for (const range of (headers.get('accept') ?? '').toLowerCase().split(',')) {
    const [name, ...parameters] = range.split(';').map((word) => word.trim())
    const type = types.find((each) => each === name)
    const weight = parameters.find((each) => each.startsWith('q='))?.slice(2)
    const wanted = weight === undefined ? 1 : Number(weight)
    if (type === undefined || !(wanted > most)) continue
    best = type
    most = wanted
  }
  return best
}
