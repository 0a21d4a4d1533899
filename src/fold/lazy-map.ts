/**
 * A lazy map and a lazy set: they allocate on their first entry. A run has thirty that mostly stay empty, and thousands of runs may be
 * open; an empty `Map` takes two hundred bytes. Classes, because closures would cost more per instance.
 */

const empty: ReadonlyMap<never, never> = new Map<never, never>()
const none: ReadonlySet<never> = new Set<never>()

export class LazyMap<K, V> implements ReadonlyMap<K, V> {
  private map: Map<K, V> | undefined = undefined

  get size(): number {
    return this.map === undefined ? 0 : this.map.size
  }

  get(key: K): V | undefined {
    return this.map?.get(key)
  }

  has(key: K): boolean {
    return this.map !== undefined && this.map.has(key)
  }

  set(key: K, value: V): void {
    this.map ??= new Map()
    this.map.set(key, value)
  }

  delete(key: K): boolean {
    return this.map !== undefined && this.map.delete(key)
  }

  clear(): void {
    this.map = undefined
  }

  forEach(task: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    this.map?.forEach((value, key) => task(value, key, this))
  }

  keys(): MapIterator<K> {
    return (this.map ?? empty).keys()
  }

  values(): MapIterator<V> {
    return (this.map ?? empty).values()
  }

  entries(): MapIterator<[K, V]> {
    return (this.map ?? empty).entries()
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries()
  }
}

export class LazySet<T> {
  private set: Set<T> | undefined = undefined

  get size(): number {
    return this.set === undefined ? 0 : this.set.size
  }

  has(value: T): boolean {
    return this.set !== undefined && this.set.has(value)
  }

  add(value: T): void {
    this.set ??= new Set()
    this.set.add(value)
  }

  delete(value: T): boolean {
    return this.set !== undefined && this.set.delete(value)
  }

  [Symbol.iterator](): SetIterator<T> {
    return (this.set ?? none).values()
  }
}
