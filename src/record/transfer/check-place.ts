/** Where a run stands among those that are there already: it must not come before itself, nor be called by itself. */
import { mostNested } from '../../part/check-entry.ts'
import type { RunIndex, RunRow } from '../../part/log.ts'
import { invalidRecording, type CheckedRecording } from './check-recording.ts'

/** Runs of a conversation that are looked at. Whoever reads a longer one keeps from going round in a circle by itself. */
const mostTurns = 10_000
/** So many are looked at in one go. */
const slice = 100

/** Throws `invalid-recording`. */
export async function checkPlace(
  runs: Pick<RunIndex, 'get'>,
  name: string,
  { id, named }: CheckedRecording,
): Promise<void> {
  await follow('parentRunId', mostNested)
  await follow('previousRunId', mostTurns)

  async function follow(field: 'parentRunId' | 'previousRunId', most: number): Promise<void> {
    const seen = new Set([id])
    for (let at = named[field]; at !== undefined;) {
      if (seen.has(at)) {
        const what = field === 'parentRunId' ? 'is called by' : 'continues'
        throw invalidRecording(name, `line 1: ${field}: run ${named[field]} ${what} run ${at} itself`)
      }
      if (seen.size > most) {
        if (field === 'previousRunId') return
        throw invalidRecording(name, `line 1: parentRunId: calls of runs are nested deeper than ${most}`)
      }
      seen.add(at)
      const row: RunRow | undefined = await runs.get(at)
      at = row?.[field]
      if (seen.size % slice === 0) await new Promise((resolve) => setTimeout(resolve))
    }
  }
}
