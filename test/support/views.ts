import type { Store } from '../../src/part/log.ts'
import type { Views } from '../../src/fold/read-view.ts'

/** A store that keeps views. */
export function withViews(store: Store): Store & { runs: Views } {
  const kept = new Map<string, { seq: number; text: string }>()
  return {
    ...store,
    runs: {
      ...store.runs,
      async view(run) {
        const found = kept.get(run)
        return found && { seq: found.seq, view: JSON.parse(found.text) as unknown }
      },
      async keepView(run, seq, view) {
        if ((kept.get(run)?.seq ?? 0) <= seq) kept.set(run, { seq, text: JSON.stringify(view) })
      },
    },
  }
}
