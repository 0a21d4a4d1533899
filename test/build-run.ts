import type { Entry, RecordedPart } from '../src/part/entry.ts'

export interface Item {
  step: string
  part: RecordedPart
}

/** Parts with their paths → entries with dense seqs from `first`. */
export function buildRun(items: readonly Item[], first = 1): Entry[] {
  return items.map(({ step, part }, i): Entry => {
    const seq = first + i
    return { seq, timestamp: 1_705_584_896_000 + seq, step, ...part }
  })
}

export const startPart: RecordedPart = {
  type: 'run-start',
  runId: 'run-1',
  agent: 'assistant',
  pipeline: 'workflow: []',
  threadId: 'thread-1',
  protocol: 'ui',
  input: { messages: [{ role: 'user', content: 'Hi' }] },
}
