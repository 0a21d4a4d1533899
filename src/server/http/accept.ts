/**
 * The media type of `types` that the request prefers in `Accept`: by weight, then `first`, then by the order of the header. Undefined if none is
 * listed. Wildcards are ignored, and a weight of 0 excludes a type.
 */
export function preferredType<T extends string>({ headers }: Request, types: readonly T[], first?: T): T | undefined {
  const accept = headers.get('accept')
  if (accept === null || accept === '*/*') return undefined
  let best: T | undefined
  let most = 0
  for (const range of accept.toLowerCase().split(',')) {
    const [name, ...parameters] = range.split(';').map((word) => word.trim())
    const type = types.find((each) => each === name)
    const weight = parameters.find((each) => each.startsWith('q='))?.slice(2)
    const wanted = weight === undefined ? 1 : Number(weight)
    if (type === undefined || !(wanted > most || (wanted === most && wanted > 0 && type === first))) continue
    best = type
    most = wanted
  }
  return best
}
