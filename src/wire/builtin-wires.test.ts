import { describe, expect, test } from 'vitest'
import { buildRun, startPart } from '../../test/build-run.ts'
import type { ErrorValue } from '../part/error.ts'
import { noUsage } from '../part/usage.ts'
import { builtinWires } from './builtin-wires.ts'
import { openaiWire } from './openai/openai.ts'

describe('builtinWires', () => {
  test('every wire is listed by its own name', () => {
    const list = [...builtinWires]
    expect(list.length).toBeGreaterThanOrEqual(4)
    for (const [name, wire] of list) expect(wire.name).toBe(name)
  })

  const error: ErrorValue = {
    code: 'step-failed',
    message: 'Step "a" (own) failed.',
    step: 'main/a',
    detail: 'INTERNALS',
  }
  const failed = buildRun([
    { step: '', part: startPart },
    { step: 'main/a', part: { type: 'step-start', stepType: 'own', attempt: 1, answer: true } },
    { step: 'main/a', part: { type: 'text-start', id: '1' } },
    { step: 'main/a', part: { type: 'text-delta', id: '1', delta: 'Once ' } },
    { step: 'main/a', part: { type: 'error', error } },
    { step: 'main/a', part: { type: 'retry', attempt: 2, delay: 0, error } },
    { step: 'main/a', part: { type: 'text-end', id: '1' } },
    { step: 'main/a', part: { type: 'step-finish', duration: 1, error } },
    { step: '', part: { type: 'run-end', outcome: 'failed', usage: noUsage, error } },
  ])

  test.each([...builtinWires.values()])('$name: what is for the log alone is told by the log alone', (wire) => {
    const options = wire === openaiWire ? { extensions: ['tools', 'trace'] } : { ui7: true }
    const isLog = wire.name.startsWith('parts')
    expect(wire.showsLog).toBe(isLog || undefined)
    const encoder = wire.createEncoder({}, options)
    const body = failed.map((entry) => encoder.encode(entry)).join('')
    expect(body.includes('INTERNALS')).toBe(isLog)
    expect(body.includes('main/a')).toBe(isLog)
    if (wire.name !== 'text') expect(body.replaceAll('\\', '')).toContain(error.message)
    expect(wire.createEncoder({}, options).fail(error).includes('INTERNALS')).toBe(isLog)
  })
})
