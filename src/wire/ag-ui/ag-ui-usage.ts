/** The usage of a run in the shape of AG-UI: one item for each model. */
import type { TokenUsage } from '@ag-ui/core'
import { compact } from '../../part/compact.ts'
import { addUsage, type Usage } from '../../part/usage.ts'
import type { EntryOf } from '../../part/entry.ts'

export interface AgUiUsage {
  add(entry: EntryOf<'usage'>): void
  /** The run as clients count them begins: it has none. */
  clear(): void
  /** Undefined for none. */
  all(): TokenUsage[] | undefined
}

export function createAgUiUsage(): AgUiUsage {
  let models = new Map<string, Usage>()
  return {
    add({ model, usage }) {
      models.set(model, addUsage(models.get(model), usage))
    },
    clear() {
      models = new Map()
    },
    all() {
      if (models.size === 0) return undefined
      return [...models].map(([name, usage]) => {
        const counts = compact({ ...usage, source: undefined })
        const colon = name.indexOf(':')
        if (colon < 1) return { model: name, ...counts }
        return {
          provider: name.slice(0, colon),
          model: name.slice(colon + 1),
          ...counts,
        }
      })
    },
  }
}
