import { describe, expect, test } from 'vitest'
import { buildRun, startPart, type Item } from '../../test/build-run.ts'
import type { RecordedPart } from '../part/entry.ts'
import { agentResult, createAgentCalls } from './agent-calls.ts'

const called = (agent: string, toolCallId: string, more: object = {}): RecordedPart => {
  const names = { toolCallId, toolName: `ask_${agent}`, agent, pipeline: 'workflow: []' }
  return { type: 'step-start', stepType: 'call-agent', kind: 'tool-call', attempt: 1, ...names, ...more }
}

describe('calls of agents', () => {
  const items: Item[] = [
    { step: '', part: startPart },
    { step: 'main/a/2', part: called('outer', 'c1') },
    { step: 'main/a/2/s/2', part: called('inner', 'c2') },
    { step: 'main/a/3', part: called('taking', 'c3', { handoff: true }) },
    { step: 'main/b', part: { type: 'step-start', stepType: 'call-agent', attempt: 1, agent: 'step' } },
  ]
  const open = () => {
    const calls = createAgentCalls()
    for (const entry of buildRun(items)) if (entry.type === 'step-start') calls.start(entry)
    return calls
  }

  test('what is below a call belongs to the innermost one; the call itself to its caller', () => {
    const calls = open()
    expect(calls.around('main/a/2/s/2/t/1')).toMatchObject({ agent: 'inner', parent: { agent: 'outer' } })
    expect(calls.around('main/a/2/s/2')).toMatchObject({ agent: 'outer', parent: undefined })
    expect(calls.around('main/a/2')).toBeUndefined()
    expect(calls.around('main/a/20/s')).toBeUndefined()
    expect(calls.under('main/a').map(({ agent }) => agent)).toEqual(['outer', 'inner'])
  })

  test('a handoff and a step that calls an agent are no calls of a model for an agent that answers it', () => {
    const calls = open()
    expect(calls.around('main/a/3/s')).toBeUndefined()
    expect(calls.around('main/b/s')).toBeUndefined()
  })

  test('nothing belongs to a call that has ended', () => {
    const calls = open()
    expect(calls.around('main/a/2/s/2/t')).toMatchObject({ agent: 'inner' })
    calls.end('main/a/2/s/2')
    expect(calls.around('main/a/2/s/2/t')).toMatchObject({ agent: 'outer' })
    calls.end('main/a/2')
    expect(calls.around('main/a/2/s/2/t')).toBeUndefined()
  })

  test('the result is that of the call itself, once it is whole', () => {
    const calls = open()
    const result = (step: string, toolCallId: string, more: object = {}) =>
      buildRun([{ step, part: { type: 'tool-result', toolCallId, toolName: 't', result: 1, ...more } }], 9)[0]!
    expect(agentResult(calls, result('main/a/2/s/2', 'other'))).toBeUndefined()
    expect(agentResult(calls, result('main/a/2/s/2', 'c2', { preliminary: true }))).toBeUndefined()
    expect(agentResult(calls, result('main/a/2/s/2', 'c2'))).toMatchObject({ agent: 'inner', result: { seq: 9 } })
  })
})
