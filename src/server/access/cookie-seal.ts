/**
 * Seals what our cookies say. The secret is one of the store, so all instances share it; each month has its own, and that of the month before still
 * opens.
 */
import type { Log } from '../../part/log.ts'
import { createSeal, type Seal } from '../../part/sealed-text.ts'

export interface CookieSeal {
  seal(text: string): Promise<string>
  /** Undefined for anything that was not sealed here in this month or the last. `isOld`: seal it again. */
  open(sealed: string): Promise<{ text: string; isOld: boolean } | undefined>
}

const monthMs = 30 * 86_400_000
/** Browsers keep 4096 bytes of a cookie. */
const longest = 4000
/** Longer sealed texts do not open, and browsers do not keep them with the name of the cookie. */
export const longestCookie = 3900

/** `name`: which cookie; those of another name do not open. */
export function createCookieSeal(log: Pick<Log, 'post'>, name: string, now: () => number): CookieSeal {
  const seals = new Map<number, Seal>()

  function sealOf(month: number): Seal {
    const known = seals.get(month)
    if (known !== undefined) return known
    for (const each of seals.keys()) if (each < month - 1) seals.delete(each)
    const seal = createSeal(log, `${name}:${month}`, { inbox: 'access:cookie-secret', longest })
    seals.set(month, seal)
    return seal
  }

  const current = () => Math.floor(now() / monthMs)

  return {
    async seal(text) {
      const month = current()
      return `${month}.${await sealOf(month).seal(text)}`
    },
    async open(sealed) {
      const [, month, inside] = /^(\d{1,6})\.(.+)$/u.exec(sealed) ?? []
      const age = current() - Number(month)
      if (inside === undefined || (age !== 0 && age !== 1)) return undefined
      const text = await sealOf(Number(month)).open(inside)
      return text === undefined ? undefined : { text, isOld: age === 1 }
    },
  }
}
