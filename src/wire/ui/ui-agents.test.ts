import { describe, expect, test } from 'vitest'
import { buildRun, startPart, type Item } from '../../../test/build-run.ts'
import type { Entry, RecordedPart } from '../../part/entry.ts'
import { noUsage } from '../../part/usage.ts'
import type { UiAgent } from './ui-agents.ts'
import { uiWire } from './ui.ts'

const at = (step: string, ...parts: RecordedPart[]): Item[] => parts.map((part) => ({ step, part }))
const answering: RecordedPart = { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }
const modelCall = (attempt = 1): RecordedPart => ({ type: 'step-start', stepType: 'model-call', attempt })
const call: RecordedPart = { type: 'tool-call', toolCallId: 'c', toolName: 'helper', input: '{}' }
const finished: RecordedPart = { type: 'step-finish', duration: 1 }
const called = (attempt = 1): RecordedPart => {
  const names = { toolCallId: 'c', toolName: 'helper', agent: 'helper', pipeline: 'workflow: []' }
  return { type: 'step-start', stepType: 'call-agent', kind: 'tool-call', attempt, ...names }
}
const begun: Item[] = [
  ...at('', startPart),
  ...at('main/a', answering),
  ...at('main/a/1', modelCall(), call, finished),
  ...at('main/a/2', called()),
  ...at('main/a/2/s', { type: 'step-start', stepType: 'llm', attempt: 1 }),
  ...at('main/a/2/s/1', modelCall(), { type: 'text-start', id: 't' }),
]
const delta = (text: string): Item[] => at('main/a/2/s/1', { type: 'text-delta', id: 't', delta: text })
const result: Item[] = at('main/a/2', { type: 'tool-result', toolCallId: 'c', toolName: 'helper', result: 'ok' })

/** The parts `data-agent`, with the time of the entry that each came with. `ms`: between two entries. */
function agentsOf(items: Item[], ms = 1): { time: number; data: UiAgent }[] {
  const encoder = uiWire.createEncoder()
  return buildRun(items).flatMap((entry): { time: number; data: UiAgent }[] => {
    const timed = { ...entry, timestamp: entry.seq * ms } as Entry
    return encoder
      .encode(timed)
      .split('\n\n')
      .filter((frame) => frame.startsWith('data: {"type":"data-agent"'))
      .map((frame) => {
        const { id, data } = JSON.parse(frame.slice('data: '.length)) as { id: string; data: UiAgent }
        expect(id).toBe(data.path)
        return { time: timed.timestamp, data }
      })
  })
}

describe('UI wire: called agents', () => {
  test('a part is sent at most four times a second, and always at the end', () => {
    const many = Array.from({ length: 500 }, (_, i) => delta(`${i} `)).flat()
    const parts = agentsOf([...begun, ...many, ...result], 10)
    const times = parts.map(({ time }) => time)
    for (const [i, time] of times.slice(1, -1).entries()) expect(time - times[i]!).toBeGreaterThanOrEqual(250)
    // Five seconds of words.
    expect(parts.length).toBeGreaterThan(15)
    expect(parts.length).toBeLessThanOrEqual(22)
    expect(parts.at(-1)!.data).toMatchObject({ status: 'done', tail: expect.stringMatching(/ 498 499 $/u) })
  })

  test('the tail has the last 2,000 characters, and no half of one', () => {
    const tails = agentsOf([...begun, ...delta('😀'.repeat(3000)), ...delta('x'), ...result], 300)
    for (const { data } of tails) expect(data.tail.length).toBeLessThanOrEqual(2000)
    expect(tails.at(-1)!.data.tail).toBe(`${'😀'.repeat(999)}x`)
  })

  test('the newest 20 tool calls are listed', () => {
    const calls = Array.from({ length: 30 }, (_, i): RecordedPart => {
      return { type: 'tool-call', toolCallId: `i${i}`, toolName: `tool${i}`, input: '{}' }
    })
    const { tools } = agentsOf([...begun, ...at('main/a/2/s/1', ...calls), ...result]).at(-1)!.data
    expect(tools.map(({ toolName }) => toolName)).toEqual(Array.from({ length: 20 }, (_, i) => `tool${i + 10}`))
  })

  test('a crash inside takes back what the attempt has said, without an end of the answer', () => {
    const again: Item[] = [
      ...at('main/a/2/s/1', { type: 'step-reset', attempt: 1 }, modelCall(2), { type: 'text-start', id: 't2' }),
      ...at('main/a/2/s/1', { type: 'text-delta', id: 't2', delta: 'second' }),
    ]
    const parts = agentsOf([...begun, ...delta('first'), ...again, ...result], 300)
    expect(parts.map(({ data }) => data.tail)).toEqual(['', 'first', '', 'second', 'second'])
  })

  test('what fails or is stopped is not left running', () => {
    const error = { code: 'failed', message: 'It broke.' }
    const ended = at('', { type: 'run-end', outcome: 'failed', usage: noUsage, error })
    expect(agentsOf([...begun, ...delta('half'), ...ended]).at(-1)!.data).toMatchObject({
      status: 'failed',
      tail: 'half',
    })
  })

  test('an agent whose caller nobody sees is not shown', () => {
    const hidden = begun.map(({ step, part }): Item => {
      return part.type === 'step-start' && part.answer === true
        ? { step, part: { type: 'step-start', stepType: 'llm', attempt: 1 } }
        : { step, part }
    })
    expect(agentsOf([...hidden, ...delta('x'), ...result], 300)).toEqual([])
  })

  test('a client that joins gets the open calls as they are', () => {
    const entries = buildRun([...begun, ...delta('so far'), ...delta(' and more')])
    const encoder = uiWire.createEncoder({ joinedAt: entries.length })
    for (const entry of entries.slice(0, -1)) encoder.skip(entry)
    expect(encoder.encode(entries.at(-1)!)).toContain('"tail":"so far"')
  })
})
