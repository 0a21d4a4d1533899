/** A ledger in memory: for stores that no other process shares, and that nothing outlives. */
import type { Ledger } from '../part/ledger.ts'

interface Sum {
  value: number
  until: number
}

/** Number of sums above which those that may be dropped are. */
const many = 1000

/** `now`: epoch ms. */
export function createLedger(now: () => number = Date.now): Ledger {
  const sums = new Map<string, Sum>()
  let most = many

  /** Undefined if it may be dropped. */
  function current(name: string): Sum | undefined {
    const sum = sums.get(name)
    return sum === undefined || sum.until <= now() ? undefined : sum
  }

  function keep(name: string, value: number, until: number): void {
    sums.set(name, { value, until })
    if (sums.size <= most) return
    const at = now()
    for (const [each, sum] of sums) if (sum.until <= at) sums.delete(each)
    most = Math.max(many, 2 * sums.size)
  }

  const read = (book: string, key: string) => current(sumName(book, key))?.value ?? 0

  return {
    async add(book, amounts, once) {
      const mark = once && current(markName(book, once.key))?.value
      if (once !== undefined && (mark ?? 0) >= once.position) return amounts.map(({ key }) => read(book, key))
      if (once !== undefined) keep(markName(book, once.key), once.position, once.until)
      return amounts.map(({ key, amount, until }) => {
        const value = read(book, key) + amount
        keep(sumName(book, key), value, until)
        return value
      })
    },
    read: async (book, keys) => keys.map((key) => read(book, key)),
    mark: async (book, key) => current(markName(book, key))?.value ?? 0,
  }
}

const sumName = (book: string, key: string) => JSON.stringify([book, 'sum', key])
const markName = (book: string, key: string) => JSON.stringify([book, 'mark', key])
