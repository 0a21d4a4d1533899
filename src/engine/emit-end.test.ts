import { describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import type { Part } from '../part/part.ts'
import { emitEnd } from './write-end.ts'
import { createRunState } from './state.ts'

const now = 5
const error = { code: 'aborted', message: 'Stopped.' }
const closing = { outcome: 'aborted', error } as const

function openRun() {
  const state = createRunState()
  const said: Part['type'][] = []
  const emit = (step: string, part: Part) => {
    state.apply({ seq: state.lastSeq + 1, timestamp: now, step, ...part } as Entry)
    said.push(part.type)
  }
  emit('main/a', { type: 'step-start', stepType: 'llm', attempt: 1 })
  emit('main/a/1', { type: 'step-start', stepType: 'model-call', attempt: 1 })
  emit('main/a/1', { type: 'prompt', stage: 'response', model: 'm', messages: [] })
  emit('main/a/1', { type: 'text-start', id: 't' })
  said.length = 0
  return { state, said, emit }
}

const fault = () => {
  throw new RangeError('Maximum call stack size exceeded')
}

describe('emitEnd', () => {
  test('what is open is closed, then the run ends', () => {
    const { state, said, emit } = openRun()
    emitEnd(state, emit, { outcome: 'aborted', error, closing, now })
    expect(said).toEqual(['usage', 'text-end', 'step-finish', 'step-finish', 'run-end'])
  })

  test('a fault in whatever comes before it does not keep the run from its end', () => {
    const broken: [Parameters<typeof emitEnd>[0], string[]][] = [
      [Object.assign(openRun().state, { toolLoops: fault }), ['text-end', 'step-finish', 'step-finish', 'run-end']],
    ]
    for (const [state, expected] of broken) {
      const said: string[] = []
      emitEnd(state, (_, part) => void said.push(part.type), { outcome: 'aborted', error, closing, now })
      expect(said.slice(0, expected.length)).toEqual(expected)
    }
    const { state, said } = openRun()
    state.open.closing = fault
    emitEnd(state, (_, part) => void said.push(part.type), { outcome: 'aborted', error, closing, now })
    expect(said[0]).toBe('usage')
    expect(said[1]).toBe('run-end')
  })

  test('an output that cannot be recorded is left out rather than the end', () => {
    const { state, said, emit } = openRun()
    const picky = (step: string, part: Part) =>
      'output' in part || part.type === 'step-finish' ? fault() : emit(step, part)
    emitEnd(state, picky, { outcome: 'completed', output: 'x', closing, now })
    expect(said).toEqual(['usage', 'text-end', 'run-end'])
    expect(state.end).toMatchObject({ outcome: 'completed' })
  })
})
