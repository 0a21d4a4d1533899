/**
 * Lightweight `Headers` of a received message. We look up a few names. A real `Headers` checks and copies each name and value,
 * which the HTTP parser has checked already, so it is made on demand.
 */

class LightHeaders {
  /** Names and values, alternating. */
  readonly #raw: readonly string[]
  #real: Headers | undefined

  constructor(raw: readonly string[]) {
    this.#raw = raw
  }

  get(name: string): string | null {
    if (this.#real !== undefined) return this.#real.get(name)
    const raw = this.#raw
    const wanted = name.toLowerCase()
    let found: string | null = null
    for (let i = 0; i < raw.length; i += 2) {
      if (raw[i]!.length !== wanted.length || raw[i]!.toLowerCase() !== wanted) continue
      found = found === null ? raw[i + 1]! : found + (wanted === 'cookie' ? '; ' : ', ') + raw[i + 1]!
    }
    return found
  }

  has(name: string): boolean {
    return this.get(name) !== null
  }

  static names(headers: object): Iterable<string> {
    return #raw in headers ? headers.#raw.filter((_, i) => i % 2 === 0) : (headers as Headers).keys()
  }

  static real(headers: object): Headers {
    if (!(#raw in headers)) return headers as Headers
    if (headers.#real !== undefined) return headers.#real
    const made = new Headers()
    const raw = headers.#raw
    for (let i = 0; i < raw.length; i += 2) made.append(raw[i]!, raw[i + 1]!)
    return (headers.#real = made)
  }
}

let isComplete = false

/** `raw`: names and values, alternating, as an HTTP parser returns them. */
export function lightHeaders(raw: readonly string[]): Headers {
  if (!isComplete) standIn(LightHeaders.prototype, Headers, LightHeaders.real)
  isComplete = true
  const headers: object = new LightHeaders(raw)
  return headers as Headers
}

/** The values that Node's own functions accept. */
export function realHeaders(headers: Headers): Headers {
  return LightHeaders.real(headers)
}

/** The names, in any case. */
export function headerNames(headers: Headers): Iterable<string> {
  return LightHeaders.names(headers)
}

/* For light objects that stand in for a `Request` or a `Response`, which is made only when somebody needs more than they have. */

/**
 * Makes instances of a class instances of `Base` too: members that the class does not define come from the real object. Call it before
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
