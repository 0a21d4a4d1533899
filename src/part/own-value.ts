/**
 * The value of an own key, or undefined. Use it for every lookup in a plain object with a key from a user, request, model or
 * file: `table['constructor']` would return an inherited value. `test/lookups.test.ts` checks this.
 */
export function ownValue<V>(table: Readonly<Record<string, V>> | undefined, key: string): V | undefined {
  return table !== undefined && Object.hasOwn(table, key) ? table[key] : undefined
}
