/** For light objects that stand in for a `Request` or a `Response`, which is made only when somebody needs more than they have. */

/**
 * Makes instances of a class instances of `Base` too: what the class does not define itself is asked of the real object. Call it before
 * the first instance is handed out, but not when a module is loaded: loading `Request` and `Response` is slow.
 */
export function standIn<T extends object>(prototype: object, Base: { prototype: T }, real: (given: object) => T): void {
  const own = Reflect.ownKeys(prototype)
  Object.setPrototypeOf(prototype, Base.prototype)
  for (const key of Reflect.ownKeys(Base.prototype)) {
    if (own.includes(key) || key === Symbol.toStringTag) continue
    const { value } = Object.getOwnPropertyDescriptor(Base.prototype, key)!
    Object.defineProperty(prototype, key, {
      get(this: object) {
        const made = real(this)
        return typeof value === 'function' ? value.bind(made) : made[key as keyof T]
      },
    })
  }
}
