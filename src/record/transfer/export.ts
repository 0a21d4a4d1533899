/** A run as NDJSON: its entries as recorded, one per line. `importNdjson` makes the same run of it. */
import { createEntryLines } from '../../part/entry-lines.ts'
import { feedbackLines } from '../../part/feedback.ts'
import { MillraceError } from '../../part/error.ts'
import type { Store } from '../../part/log.ts'
import type { Recording } from '../../part/recording.ts'
import { recordedRun } from '../../part/recording.ts'
import { encodeEntries } from '../../store/encode.ts'

/**
 * The lines of a run, in pieces. Of an active run: those recorded so far. A fork has the entries of its source, too. Behind the log, in lines of their
 * own, what people said of it. Throws `unknown-run`.
 */
export async function* exportRun(
  store: Store,
  run: string,
  feedback: Store['feedback'] = store.feedback,
): AsyncGenerator<string, void, void> {
  const row = await store.runs.get(run)
  if (row === undefined) throw new MillraceError('unknown-run', `There is no run ${run}.`, { status: 404 })
  yield* exportRecording(recordedRun(store.log, run), row.lastSeq)
  const said = feedbackLines((await feedback?.of(run)) ?? [])
  if (said !== '') yield said
}

/** The lines of entries from anywhere. */
export async function* exportRecording(recording: Recording, last = Infinity): AsyncGenerator<string, void, void> {
  const toLine = createEntryLines()
  for await (const batch of recording.read({ before: last + 1 })) {
    if (batch.length > 0) yield `${encodeEntries(recording.name, batch, toLine)}\n`
  }
}
