/** What a reader of a very long response keeps: its text and its items, and nothing for each delta. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { expectSize } from '../../../test/support/figure.ts'
import type { Entry } from '../../part/entry.ts'
import { responsesWire } from './responses.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const MB = 1024 * 1024
const call = 'main/answer/1'

function reading() {
  const encoder = responsesWire.createEncoder({}, {})
  let seq = 0
  const read = (entry: object) => encoder.encode({ seq: ++seq, timestamp: 1, step: call, ...entry } as Entry)
  read({
    step: '',
    type: 'run-start',
    runId: 'run_01',
    agent: 'a',
    pipeline: '',
    threadId: 't',
    protocol: 'responses',
    input: {},
  })
  read({ step: 'main/answer', type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1, answer: true })
  read({ type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 })
  return read
}

function heap(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

describe('long responses', () => {
  test('of 1,000,000 deltas a reader keeps the text alone', () => {
    const read = reading()
    read({ type: 'text-start', id: 't' })
    const before = heap()
    for (let i = 0; i < 1_000_000; i++) read({ type: 'text-delta', id: 't', delta: `${i % 10} word ` })
    // 7 MB of text, joined now and then.
    expectSize('1,000,000 deltas', heap() - before, 20 * MB)
    read({ type: 'text-end', id: 't' })
  })

  test('of 1,000 items it keeps what the last event must have', () => {
    const read = reading()
    const before = heap()
    for (let i = 0; i < 1000; i++) {
      read({ type: 'text-start', id: `t${i}` })
      for (let n = 0; n < 100; n++) read({ type: 'text-delta', id: `t${i}`, delta: `${n} word ` })
      read({ type: 'text-end', id: `t${i}` })
      read({ type: 'tool-call', toolCallId: `c${i}`, toolName: 'look', input: `{"n":${i}}` })
      read({ type: 'tool-result', toolCallId: `c${i}`, toolName: 'look', result: `${i} `.repeat(4000) })
    }
    // 0.8 MB of text, and 8000 characters of each output, of two bytes each.
    expectSize('1,000 texts and 1,000 calls', heap() - before, 24 * MB)
    const usage = { source: 'reported' }
    const last = read({ step: '', type: 'answer-end', finishReason: 'stop', usage })
    const event = last.slice(last.indexOf('data: ') + 'data: '.length, last.indexOf('\n\n'))
    expect((JSON.parse(event) as { response: { output: unknown[] } }).response.output).toHaveLength(2000)
  })
})
