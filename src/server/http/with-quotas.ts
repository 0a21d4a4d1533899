/** Admission by the limits of the server, and by the quotas of whoever asks. */
import type { Quotas } from '../../access/quotas.ts'
import type { Admission } from './admission.ts'

/** `admission`: the limits of the server itself, if it has any. A refused start counts for none of them, unless its rates were taken before. */
export function withQuotas(
  admission: Admission | undefined,
  { admitStart, occupyStream }: Pick<Quotas, 'admitStart' | 'occupyStream'>,
): Admission {
  return {
    start: async (caller) => (await admission?.start(caller)) ?? admitStart(caller.principal),

    async stream(caller) {
      const own = await admission?.stream(caller)
      if (own instanceof Error) return own
      const place = await occupyStream(caller.principal)
      if (place instanceof Error) {
        own?.leave()
        return place
      }
      return {
        leave() {
          own?.leave()
          place.leave()
        },
      }
    },
  }
}
