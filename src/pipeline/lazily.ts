/**
 * Makes a value when it is first asked for, and keeps it. For schemas: building those of every step type takes longer than
 * reading an agent file.
 */
export function lazily<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => (made ??= { value: make() }).value
}
