/** Everything in the program that reads a run, applied to one. */
import { drawRun } from './page-folds.ts'
import { type Entry, mergeDeltas } from '../../src/part/entry.ts'
import { MillraceError } from '../../src/part/error.ts'
import { recordedEntries } from '../../src/part/recording.ts'
import { clipOutline, mergeOutline } from '../../src/fold/merge-outline.ts'
import { createCompaction } from '../../src/fold/compaction.ts'
import { createForkPlaces } from '../../src/fold/fork-places.ts'
import { createOutline } from '../../src/fold/outline.ts'
import { createRedactor } from '../../src/fold/redact.ts'
import { foldRun } from '../../src/fold/run-fold.ts'
import { createStreamEvents } from '../../src/fold/stream-events.ts'
import { withoutSuperseded } from '../../src/fold/superseded.ts'
import { createCallIds, toProvider } from '../../src/fold/call-ids.ts'
import { loopMessages } from '../../src/fold/reply-messages.ts'
import { createMessageFold } from '../../src/client/message-fold.ts'
import { questionMessages, threadMessages } from '../../src/client/thread-messages.ts'
import { diffRuns } from '../../src/record/diff/diff.ts'
import { spansOf } from '../../src/record/otlp/span-fold.ts'
import { toOtlp } from '../../src/record/otlp/otlp-json.ts'
import { replayRecording } from '../../src/record/replay/replay.ts'
import { summaryOf } from '../../src/record/log-files.ts'
import { createEntryCleaner } from '../../src/record/transfer/import.ts'
import { builtinWires } from '../../src/wire/builtin-wires.ts'
import { toUiMessages } from '../../src/wire/ui/ui-message.ts'
import { toOpenAiMessages } from '../../src/wire/openai/to-openai-messages.ts'
import { toAgUiMessages } from '../../src/wire/ag-ui/to-ag-ui-messages.ts'
import { formatSteps } from '../../src/cli/commands/show-page.ts'
import { createContext } from '../support/command-context.ts'
import { formatMessage } from '../../src/cli/terminal/format.ts'

/** Throws what any of them throws. */
export async function readEverything(entries: readonly Entry[]): Promise<void> {
  const fold = foldRun()
  const outline = createOutline()
  const places = createForkPlaces()
  const events = createStreamEvents('run')
  const callIds = createCallIds()
  const message = createMessageFold('run')
  for (const entry of entries) {
    fold.apply(entry)
    outline.apply(entry)
    places.apply(entry)
    events.note(entry)
    events.toEvent(entry)
    callIds.apply(entry)
    message.apply(entry)
  }
  message.messages()
  const kept = fold.kept()
  const view = fold.view()
  JSON.stringify([kept, view, summaryOf(view), places.near(1)])
  formatSteps(createContext(), view)
  const said = [...kept.asked, ...kept.messages]
  JSON.stringify([
    toUiMessages(said),
    toOpenAiMessages(said, { toolOutputMaxChars: 1000, isHidden: () => false }),
    toAgUiMessages(said),
  ])
  JSON.stringify([questionMessages(said, 'run'), threadMessages(said, 'run')])
  for (const each of said) formatMessage(each)
  for (const loop of fold.loops.values()) toProvider(loopMessages(loop.list), loop)
  const items = mergeOutline(outline.items())
  for (const seq of [1, Math.ceil(entries.length / 2), entries.length]) clipOutline(items, seq)
  drawRun(entries, items)
  const shown = withoutSuperseded(entries)
  JSON.stringify([mergeDeltas(entries, { marked: true }), createCompaction()(entries), shown])
  JSON.stringify(toOtlp(spansOf(entries, { content: true, unsampled: true }), { serviceName: 'test' }))
  const redactor = createRedactor(['canary-7f3a9c'], ['password'])
  const cleaner = createEntryCleaner(redactor)
  JSON.stringify([cleaner.clean(entries), cleaner.end()])
  for (const wire of builtinWires.values()) {
    for (const resumedAt of [0, entries.length]) {
      const encoder = wire.createEncoder({ resumedAt, history: said })
      for (const entry of shown) encoder.write(entry)
      encoder.take()
      encoder.fail({ code: 'over', message: 'over' })
    }
    const pieces = replayRecording(recordedEntries('run', entries), { wire, speed: Infinity, to: entries.at(-1)!.seq })
    try {
      for await (const _ of pieces);
    } catch (error) {
      // A failed run on a wire without a word for that.
      if (!(error instanceof MillraceError) || error.code !== 'incomplete') throw error
    }
  }
  await diffRuns(recordedEntries('a', entries), recordedEntries('b', [...entries].slice(0, -1)))
}
