/**
 * A map and a set for objects that come and go while others stay, such as those of active runs.
 *
 * V8 replaces the table of a `Map` or `Set` after some insertions and deletions, and the old table refers to the new one. Once one of
 * them is in the old generation, it keeps alive all that follow it, and all that they held when they were replaced: none of it is
 * collected with the young generation any more. So here the table holds only places, and an array the objects.
 */
export class SlotMap<V extends object> {
  readonly #places = new Map<string, number>()
  readonly #values: (V | undefined)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#places.size
  }

  get(key: string): V | undefined {
    const place = this.#places.get(key)
    return place === undefined ? undefined : this.#values[place]
  }

  set(key: string, value: V): void {
    let place = this.#places.get(key)
    if (place === undefined) this.#places.set(key, (place = this.#free.pop() ?? this.#values.length))
    this.#values[place] = value
  }

  delete(key: string): void {
    const place = this.#places.get(key)
    if (place === undefined) return
    this.#places.delete(key)
    this.#values[place] = undefined
    this.#free.push(place)
  }

  clear(): void {
    this.#places.clear()
    this.#values.length = 0
    this.#free.length = 0
  }

  /** In the order in which they were inserted. */
  keys(): IterableIterator<string> {
    return this.#places.keys()
  }

  /** In the order in which they were inserted. */
  *values(): Generator<V, void, void> {
    for (const place of this.#places.values()) yield this.#values[place]!
  }
}

/** A set of objects, in no order. They may be added and deleted while it is iterated. Each has its place as a property. */
export class SlotSet<T extends object> {
  readonly #place = Symbol('place')
  readonly #items: (T | undefined)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#items.length - this.#free.length
  }

  add(item: T): void {
    if (this.#placeOf(item) !== undefined) return
    const place = this.#free.pop() ?? this.#items.length
    this.#items[place] = item
    ;(item as Placed)[this.#place] = place
  }

  delete(item: T): void {
    const place = this.#placeOf(item)
    if (place === undefined) return
    this.#items[place] = undefined
    this.#free.push(place)
  }

  *[Symbol.iterator](): Generator<T, void, void> {
    for (const item of this.#items) if (item !== undefined) yield item
  }

  /** Undefined if it is not in the set. */
  #placeOf(item: T): number | undefined {
    const place = (item as Placed)[this.#place]
    return place !== undefined && this.#items[place] === item ? place : undefined
  }
}

type Placed = Record<symbol, number | undefined>
