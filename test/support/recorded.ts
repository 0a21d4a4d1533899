/** A database with runs of all kinds, for tests of the tables: an agent that calls another one and tools, a child run, random runs. */
import fc from 'fast-check'
import type { Entry, RecordedPart } from '../../src/part/entry.ts'
import type { Store } from '../../src/part/log.ts'
import { arbitraryNestedRun, arbitraryRun } from '../arbitrary-run.ts'

export const callId = 'call-1'

/** Entries of a run, with the ms that pass before each. */
export function timed(
  run: string,
  from: number,
  parts: readonly [after: number, step: string, part: RecordedPart][],
): Entry[] {
  let timestamp = from
  return parts.map(([after, step, part], i) => {
    timestamp += after
    return { seq: i + 1, timestamp, step, ...part } as Entry
  })
}

const usage = { inputTokens: 10, outputTokens: 4, totalTokens: 14, source: 'reported' as const }

/** A run with a slow call, a quick one of a called agent with the same id, and one that still runs. */
export function slowRun(run: string, now: number, parentRunId?: string): Entry[] {
  const loop = 'main/answer'
  const inner = 'main/ask/answer'
  return timed(run, now - 60_000, [
    [
      0,
      '',
      {
        type: 'run-start',
        runId: run,
        agent: 'assistant',
        pipeline: 'workflow: []',
        threadId: 'thread-slow',
        protocol: 'api',
        input: { messages: [{ role: 'user', content: 'Where is the blue whale?' }] },
        ...(parentRunId && { parentRunId }),
      },
    ],
    [1, loop, { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1, answer: true }],
    [1, `${loop}/1`, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 }],
    [1, `${loop}/1`, { type: 'prompt', stage: 'response', model: 'test:big', messages: [] }],
    [50, `${loop}/1`, { type: 'text-start', id: 't1' }],
    [1, `${loop}/1`, { type: 'text-delta', id: 't1', delta: 'I look ' }],
    [1, `${loop}/1`, { type: 'text-delta', id: 't1', delta: 'for it.' }],
    [1, `${loop}/1`, { type: 'text-end', id: 't1' }],
    [1, `${loop}/1`, { type: 'tool-call', toolCallId: callId, toolName: 'find', input: '{"animal":"whale"}' }],
    [1, `${loop}/1`, { type: 'usage', model: 'test:big', usage, cost: 0.5 }],
    [1, `${loop}/1`, { type: 'step-finish', duration: 60, usage, finishReason: 'tool-calls' }],
    [
      1,
      `${loop}/2`,
      {
        type: 'step-start',
        stepType: 'tool-call',
        kind: 'tool-call',
        attempt: 1,
        toolCallId: callId,
        toolName: 'find',
      },
    ],
    [6000, `${loop}/2`, { type: 'tool-result', toolCallId: callId, toolName: 'find', result: { place: 'Atlantic' } }],
    [1, `${loop}/2`, { type: 'step-finish', duration: 6000 }],
    [1, loop, { type: 'step-finish', duration: 6100, usage }],
    [
      1,
      'main/ask',
      {
        type: 'step-start',
        stepType: 'call-agent',
        kind: 'container',
        attempt: 1,
        agent: 'helper',
        pipeline: 'workflow: []',
      },
    ],
    [1, inner, { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1 }],
    [1, `${inner}/1`, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 }],
    [1, `${inner}/1`, { type: 'prompt', stage: 'response', model: 'test:small', messages: [] }],
    [1, `${inner}/1`, { type: 'tool-call', toolCallId: callId, toolName: 'quick', input: '{}' }],
    [1, `${inner}/1`, { type: 'usage', model: 'test:small', usage }],
    [1, `${inner}/1`, { type: 'step-finish', duration: 5, usage, finishReason: 'tool-calls' }],
    [
      1,
      `${inner}/2`,
      {
        type: 'step-start',
        stepType: 'tool-call',
        kind: 'tool-call',
        attempt: 1,
        toolCallId: callId,
        toolName: 'quick',
      },
    ],
    [
      5,
      `${inner}/2`,
      { type: 'tool-result', toolCallId: callId, toolName: 'quick', result: 'It failed.', isError: true },
    ],
    [1, `${inner}/2`, { type: 'step-finish', duration: 5 }],
    [1, `${inner}/3`, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 }],
    [1, `${inner}/3`, { type: 'tool-call', toolCallId: 'call-2', toolName: 'endless', input: '{}' }],
    [1, `${inner}/3`, { type: 'step-finish', duration: 5, finishReason: 'tool-calls' }],
    [
      1,
      `${inner}/4`,
      {
        type: 'step-start',
        stepType: 'tool-call',
        kind: 'tool-call',
        attempt: 1,
        toolCallId: 'call-2',
        toolName: 'endless',
      },
    ],
  ])
}

export async function record(store: Store, entries: readonly Entry[]): Promise<string> {
  const [start] = entries
  if (start?.type !== 'run-start') throw new Error('a run begins with run-start')
  await store.log.append(start.runId, 1, entries)
  return start.runId
}

/** Records the runs above and some random ones, and fills the tables. */
export async function recordAll(store: Store, now = Date.now()): Promise<void> {
  await record(store, slowRun('slow', now))
  await record(store, slowRun('child', now, 'slow').slice(0, 15))
  const some = fc.sample(fc.oneof(arbitraryRun, arbitraryNestedRun), { numRuns: 20, seed: 11 })
  for (const [i, entries] of some.entries()) {
    await record(
      store,
      entries.map((entry) => (entry.type === 'run-start' ? { ...entry, runId: `random-${i}` } : entry)),
    )
  }
  await store.records!.settle()
}
