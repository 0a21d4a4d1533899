/** A copy without the fields that are undefined. */
export function omitUndefined<T extends object>(value: T): T {
  // Not through `Object.entries`: this runs for many entries of a log.
  const copy = {} as T
  for (const key in value) if (value[key] !== undefined) copy[key] = value[key]
  return copy
}
