/** What an import must know of the entries that it has read: the end that a crash has cut off, and the view that is kept. */
import type { Entry } from '../../part/entry.ts'
import type { KeptView } from '../../part/log.ts'
import type { Part } from '../../part/part.ts'
import { addUsage, noUsage, type Usage } from '../../part/usage.ts'
import { createOpenItems } from '../../fold/open-items.ts'
import { viewOf } from '../../fold/read-view.ts'
import { foldRun, type FoldedRun } from '../../fold/run-fold.ts'

/** Bytes of a recording whose view is made as it is read. That of a longer one takes memory: who needs it folds the log. */
const mostFolded = 32 * 1024 * 1024

export interface ImportFold {
  readonly lastSeq: number
  /** `bytes`: of the text of the entries. */
  apply(entries: readonly Entry[], bytes: number): void
  /** The entries that end the run, if it neither has ended nor waits for an answer. */
  missingEnd(): Entry[]
  view(this: void): KeptView | undefined
}

export function createImportFold(): ImportFold {
  const open = createOpenItems()
  let whole: FoldedRun | undefined = foldRun()
  let usage: Usage | undefined
  let bytes = 0
  let last: Entry | undefined

  return {
    get lastSeq() {
      return last?.seq ?? 0
    },
    apply(entries, more) {
      bytes += more
      if (bytes > mostFolded) whole = undefined
      for (const entry of entries) {
        open.apply(entry)
        whole?.apply(entry)
        if (entry.type === 'usage') usage = addUsage(usage, entry.usage)
        last = entry
      }
    },
    missingEnd() {
      if (last === undefined || open.ended || open.suspended) return []
      const { timestamp } = last
      const error = { code: 'interrupted', message: 'The recording ended before the run.' }
      let { seq } = last
      const toEntry = (step: string, part: Part) => ({ seq: ++seq, timestamp, step, ...part }) as Entry
      const closing = open.closing({ now: timestamp, outcome: 'unavailable', error })
      return [
        ...closing.map(({ step, part }) => toEntry(step, part)),
        toEntry('', { type: 'run-end', outcome: 'interrupted', usage: usage ?? noUsage, error }),
      ]
    },
    view: () => whole && viewOf(whole),
  }
}
