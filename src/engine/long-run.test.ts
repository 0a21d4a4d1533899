/** What a call of a long run costs: as much as one of a short run. Counted in entries that are read. */
import { expect, test } from 'vitest'
import { loopMessages, type ModelReply } from '../fold/reply-messages.ts'
import type { Entry } from '../part/entry.ts'
import { createRunState } from './state.ts'

const usage = { inputTokens: 2, outputTokens: 1, totalTokens: 3, source: 'reported' }

/** A run with `rounds` steps of a model call and a tool call each. `read` is called for each `step-finish` that is looked at. */
function longRun(rounds: number, read: () => void) {
  const state = createRunState()
  let seq = 0
  const add = (step: string, rest: object) =>
    state.apply({ seq: ++seq, timestamp: seq, step, ...rest } as unknown as Entry)
  const start = (step: string, kind: string) => add(step, { type: 'step-start', stepType: kind, kind, attempt: 1 })
  const end = (step: string, rest: object = {}) => {
    const entry = { seq: ++seq, timestamp: seq, type: 'step-finish', duration: 1, ...rest }
    Object.defineProperty(entry, 'step', { get: () => (read(), step) })
    state.apply(entry as unknown as Entry)
  }
  const round = (i: number) => {
    start(`main/each/${i}`, 'tool-loop')
    start(`main/each/${i}/1`, 'model-call')
    end(`main/each/${i}/1`, { usage })
    start(`main/each/${i}/2`, 'tool-call')
    end(`main/each/${i}/2`)
    start(`main/each/${i}/3`, 'model-call')
    end(`main/each/${i}/3`, { usage })
  }
  start('main', 'container')
  for (let i = 0; i < rounds; i++) {
    round(i)
    end(`main/each/${i}`)
  }
  return { state, round, add, start, end }
}

test('the usage of a step and the number of its calls are read from its own entries, however long the run is', () => {
  const reads = [10, 1000].map((rounds) => {
    let count = 0
    const { state, round } = longRun(rounds, () => count++)
    round(rounds)
    state.countCalls('main/each/3')
    count = 0
    expect(state.usageBelow(`main/each/${rounds}`)).toMatchObject({ totalTokens: 6 })
    expect(state.usageBelow('main/each/3')).toMatchObject({ totalTokens: 6 })
    expect(state.countCalls(`main/each/${rounds}`)).toBe(3)
    expect(state.countCalls('main')).toBe(3 * (rounds + 1))
    return count
  })
  expect(reads[1]).toBe(reads[0])
  expect(reads[0]).toBeLessThan(20)
})

test('a step that was made again counts with its last end, and a path that only begins like another does not', () => {
  const { state, add, start, end } = longRun(1, () => undefined)
  start('main/a', 'tool-loop')
  start('main/a/1', 'model-call')
  end('main/a/1', { usage })
  start('main/ab', 'model-call')
  end('main/ab', { usage })
  add('main/a/1', { type: 'step-reset', attempt: 1 })
  start('main/a/1', 'model-call')
  end('main/a/1', { usage: { ...usage, totalTokens: 5 } })
  expect(state.usageBelow('main/a')).toMatchObject({ totalTokens: 5 })
  expect(state.countCalls('main/a')).toBe(1)
  end('main/a')
  start('main/a', 'tool-loop')
  start('main/a/2', 'model-call')
  end('main/a/2', { usage })
  expect(state.usageBelow('main/a')).toMatchObject({ totalTokens: 8 })
})

test('the messages of a reply that is over are made once, and again when a client has answered its call', () => {
  const result = (text: string) =>
    ({ toolCallId: 'c', toolName: 'look', result: text }) as ModelReply['calls'][0]['result']
  const reply: ModelReply = {
    path: 'main/a/1',
    content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'look', input: {} }],
    calls: [{ toolCallId: 'c', toolName: 'look', input: '{}', providerExecuted: false, result: result('later')! }],
    closed: true,
  }
  const first = loopMessages([reply], 'named')
  const again = loopMessages([reply, { ...reply, path: 'main/a/2' }], 'named')
  expect(again[0]).toBe(first[0])
  expect(again[1]).toBe(first[1])
  reply.calls[0]!.result = result('seen')!
  expect(loopMessages([reply], 'named')[1]).toMatchObject({ content: [{ output: { value: 'seen' } }] })
  const open: ModelReply = { ...reply, path: 'main/a/3', closed: false }
  expect(loopMessages([open])[0]).not.toBe(loopMessages([open])[0])
})
