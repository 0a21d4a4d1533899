import { expect } from 'vitest'

/** Prints a measured size beside its bound, in MB, and expects that it keeps it. */
export function expectSize(what: string, bytes: number, bound: number): void {
  const mb = (n: number) => (n / 2 ** 20).toFixed(1)
  console.info(`${what}: ${mb(bytes)} MB (less than ${mb(bound)})`)
  expect(bytes, what).toBeLessThan(bound)
}
