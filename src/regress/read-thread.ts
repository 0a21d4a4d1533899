/** What a test case is made of: the log of a run, and those of the runs that its conversation continues. */
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { programsIn } from '../runtime/foreign-programs.ts'

/** The longest conversation that becomes a case, and all its entries. */
const maxTurns = 50
const maxEntries = 500_000

/** The run and those before it that its conversation continues, the oldest first. `read`: the entries of a run. */
export async function readThread(read: (run: string) => AsyncIterable<Entry>, run: string): Promise<Entry[][]> {
  const logs: Entry[][] = []
  const seen = new Set<string>()
  let count = 0
  for (let id: string | undefined = run; id !== undefined && !seen.has(id);) {
    seen.add(id)
    if (logs.length === maxTurns) throw new MillraceError('bad-run', `The conversation has more than ${maxTurns} runs.`)
    const entries: Entry[] = []
    for await (const entry of read(id)) {
      entries.push(entry)
      if (++count > maxEntries)
        throw new MillraceError('bad-run', `The conversation has more than ${maxEntries} entries.`)
    }
    logs.unshift(entries)
    const start = entries[0]
    id = start?.type === 'run-start' ? start.previousRunId : undefined
  }
  return logs
}

/**
 * What recordings made elsewhere by another agent name; undefined if there are none. `text`: of the agent here, which the test always runs.
 */
export function foreignLines(logs: readonly (readonly Entry[])[], text: string): string[] | undefined {
  const isForeign = (log: readonly Entry[]) => log[0]?.type === 'run-start' && log[0].foreign !== undefined
  const foreign = logs.filter((log) => isForeign(log) && textOf(log) !== text)
  return foreign.length === 0 ? undefined : foreign.flatMap((log) => programsIn(log, { ownText: true }))
}

/** What is asked before such a run becomes a case. */
export const foreignTitle =
  'A test plays the agent here with what the recording says, and sets nothing of it to work. The recording names:'

function textOf(log: readonly Entry[]): string | undefined {
  let text: string | undefined
  for (const entry of log) if (entry.type === 'run-start' || entry.type === 'resume') text = entry.pipeline ?? text
  return text
}
