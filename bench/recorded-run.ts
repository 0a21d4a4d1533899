/** A long run as it is recorded: blocks of text, with a tool call now and then. */
import type { Entry } from '../src/part/entry.ts'

export const wordsOfBlock = 400
/** Words of different lengths and frequencies, the same in every round. */
const vocabulary = Array.from({ length: 5000 }, (_, i) => (i * 2_654_435_761).toString(36).slice(-3 - (i % 7)))

export function wordAt(n: number): string {
  const random = ((n * 1_103_515_245 + 12_345) >>> 8) % 1_000_000
  return `${vocabulary[Math.floor((random / 1_000_000) ** 2 * vocabulary.length)]!} `
}

/** It has run to its end: a fork behind the last step asks no model. */
export const pipelineOfRun = `workflow:
  - { id: a, type: llm, config: { model: "demo:assistant", stream: true } }
`

/** One run with so many deltas, in blocks; every tenth block is followed by a tool call. */
export function* recordedEntries(run: string, deltas: number): Generator<Entry> {
  let seq = 0
  const began = Date.now() - deltas
  const entry = (step: string, part: object) =>
    ({ seq: ++seq, timestamp: began + Math.floor(seq / 2), step, ...part }) as Entry
  const messages = [{ role: 'user', content: 'go' }]
  const start = { runId: run, agent: 'a', pipeline: pipelineOfRun, threadId: 't', protocol: 'api', input: { messages } }
  yield entry('', { type: 'run-start', ...start })
  yield entry('main/a', { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1, answer: true })
  for (let block = 0; block * wordsOfBlock < deltas; block++) {
    const step = `main/a/${block + 1}`
    yield entry(step, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 })
    yield entry(step, { type: 'text-start', id: `${block}` })
    for (let i = 0; i < wordsOfBlock; i++) {
      yield entry(step, { type: 'text-delta', id: `${block}`, delta: wordAt(block * wordsOfBlock + i) })
    }
    yield entry(step, { type: 'text-end', id: `${block}` })
    if (block % 10 === 0) {
      const call = { toolCallId: `c${block}`, toolName: block % 20 === 0 ? 'search' : 'fetch' }
      yield entry(step, { type: 'tool-call', ...call, input: JSON.stringify({ block }) })
      yield entry(step, { type: 'tool-result', ...call, result: { block } })
    }
    yield entry(step, { type: 'step-finish', duration: 1 })
  }
  yield entry('main/a', { type: 'step-finish', duration: 1 })
  yield entry('', { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } })
}
