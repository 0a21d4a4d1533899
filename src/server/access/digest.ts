/** SHA-256 in hex. At once on Node: Web Crypto works on another thread, and every request would wait for it. */
import { hashText } from '../http/key.ts'

const hash = globalThis.process?.getBuiltinModule?.('node:crypto')?.hash

export function digestOf(text: string): string | Promise<string> {
  return hash === undefined ? hashText(text) : hash('sha256', text)
}

/** Calls `use` with the value, at once if it is there. */
export function whenKnown<T, R>(value: T | Promise<T>, use: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(use) : use(value)
}
