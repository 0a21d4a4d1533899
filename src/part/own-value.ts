/**
 * The value of an own key, or undefined. Keys that come from users, requests, models or files are looked up in plain
 * objects only this way: `table['constructor']` would find what every object inherits. `test/lookups.test.ts` checks it.
 */
export function ownValue<V>(table: Readonly<Record<string, V>> | undefined, key: string): V | undefined {
  return table !== undefined && Object.hasOwn(table, key) ? table[key] : undefined
}
