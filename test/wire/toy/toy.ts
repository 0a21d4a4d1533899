/**
 * A protocol as a pack would bring it: one line a thing that happens.
 *
 * | part | event |
 * |---|---|
 * | `run-start` | `begin`, with the number of messages before this run |
 * | `text-delta` of the answer | `say` |
 * | `answer-end`, `run-end` completed | `end`; the output comes before it when no step answered |
 * | `run-end` with another outcome, `suspend` (not resumed since), `step-reset` of what was said | `fail` |
 * | all others | dropped: the protocol has no line for them |
 */
import type { Entry } from '../../../src/part.ts'
import { createWire, ndjson, type Projection, type Sink, type WireContext } from '../../../src/wire.ts'

type ToyEvent = { begin: string; before: number } | { say: string } | { end: string } | { fail: string }

export interface ToyOptions {
  /** Capital letters only. */
  loud: boolean
}

export const toyWire = createWire<ToyEvent, ToyOptions>({
  name: 'toy',
  project: projectToy,
  framing: ndjson(),
  showsHistory: true,
})

function projectToy(
  sink: Sink<ToyEvent>,
  { resumedAt = 0, history = [] }: WireContext,
  { loud = false }: Partial<ToyOptions>,
): Projection {
  const answers: string[] = []
  const said = new Set<string>()
  const say = sink.prepare((text) => ({ say: text }))
  const isIn = (path: string, root: string) => path === root || path.startsWith(`${root}/`)

  function end(event: ToyEvent): void {
    projection.state = 'complete'
    sink.send(event)
    sink.end()
  }

  function apply(entry: Entry): void {
    if (projection.state !== 'open') return
    if (entry.type === 'run-start') sink.send({ begin: entry.runId, before: history.length })
    else if (entry.type === 'step-start' && entry.answer) answers.push(entry.step)
    else if (entry.type === 'text-delta' && answers.some((root) => isIn(entry.step, root))) {
      said.add(entry.step)
      say(loud ? entry.delta.toUpperCase() : entry.delta)
    } else if (entry.type === 'step-reset' && [...said].some((path) => isIn(path, entry.step))) {
      end({ fail: 'interrupted' })
    } else if (entry.type === 'suspend' && entry.seq >= resumedAt) end({ fail: 'suspended' })
    else if (entry.type === 'answer-end') end({ end: entry.finishReason })
    else if (entry.type === 'run-end' && entry.outcome === 'completed') {
      if (answers.length === 0) say(JSON.stringify(entry.output ?? null))
      end({ end: 'stop' })
    } else if (entry.type === 'run-end') end({ fail: entry.error?.message ?? entry.outcome })
  }

  const projection = {
    state: 'open' as Projection['state'],
    apply,
    fail: (error: { message: string }) => end({ fail: error.message }),
  }
  return projection
}
