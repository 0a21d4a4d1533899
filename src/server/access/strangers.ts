/** Requests without a credential that counts, in the audit: one row for an address in a while, so that nobody fills the table. */
import type { Store } from '../../part/log.ts'
import { recordAudit } from '../routes/audit.ts'

/** ms in which an address gets one row. */
const pace = 10_000
/** Maximum number of addresses that are remembered. */
const mostKept = 1000

export interface Strangers {
  note(address: string): void
}

export function createStrangers(store: Pick<Store, 'audit' | 'now'>, onError: (error: unknown) => void): Strangers {
  const seen = new Map<string, number>()
  return {
    note(address) {
      const now = performance.now()
      if ((seen.get(address) ?? -Infinity) > now - pace) return
      seen.delete(address)
      if (seen.size >= mostKept) seen.delete(seen.keys().next().value!)
      seen.set(address, now)
      recordAudit({ store, onError }, { action: 'open', outcome: 'refused', address })
    },
  }
}
