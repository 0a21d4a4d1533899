import { describe, expect, test } from 'vitest'
import { buildRun, startPart, type Item } from '../../../test/build-run.ts'
import type { RecordedPart } from '../../part/entry.ts'
import { noUsage } from '../../part/usage.ts'
import { textWire } from './text.ts'
import { wireContract } from '../wire.contract.ts'

wireContract(textWire, {
  judge({ body, state, entries, context: { resumedAt = 0 } }) {
    expect(body).not.toContain('AFTER')
    const end = entries.findIndex(
      ({ type, seq }) => type === 'answer-end' || type === 'run-end' || (type === 'suspend' && seq >= resumedAt),
    )
    const answers = new Set(
      entries.flatMap((entry) => (entry.type === 'step-start' && entry.answer ? [entry.step] : [])),
    )
    let words = ''
    const heard = new Set<string>()
    let broken = false
    for (const entry of entries.slice(0, end)) {
      const answer = [...answers].some((path) => entry.step.startsWith(`${path}/`))
      if (entry.type === 'text-delta' && answer && entry.delta !== '') {
        const isNew = !heard.has(entry.step)
        heard.add(entry.step)
        words += `${isNew && words !== '' && !words.endsWith('\n') ? '\n\n' : ''}${entry.delta}`
      }
      if (entry.type !== 'step-reset') continue
      broken = entries
        .slice(0, entry.seq)
        .some((e) => answer && e.type === 'text-delta' && e.delta !== '' && e.step === entry.step)
      if (broken) break
    }
    const last = entries[end]!
    if (last.type === 'run-end' && last.outcome !== 'completed') broken = true
    expect(state).toBe(broken ? 'broken' : 'complete')
    if (answers.size > 0) expect(body).toBe(words)
    else if (last.type === 'run-end' && !broken) {
      expect(body).toBe(typeof last.output === 'string' ? last.output : JSON.stringify(last.output))
    }
  },
})

const speak = (step: string, id: string, delta: string): Item[] =>
  (
    [
      { type: 'text-start', id },
      { type: 'text-delta', id, delta },
      { type: 'text-end', id },
    ] satisfies RecordedPart[]
  ).map((part) => ({ step, part }))

describe('text wire', () => {
  test('a sub-agent inside a tool is not the answer; one that answers is', () => {
    const encoder = textWire.createEncoder()
    const start = (step: string, more: object): Item => ({
      step,
      part: { type: 'step-start', stepType: 'x', attempt: 1, ...more },
    })
    const entries = buildRun([
      { step: '', part: startPart },
      start('main/a', { answer: true }),
      start('main/a/1', { toolCallId: 'c', toolName: 't' }),
      start('main/a/1/child', {}),
      ...speak('main/a/1/child', 't1', 'hidden '),
      ...speak('main/a/1', 't2', 'hidden '),
      start('main/b', {}),
      ...speak('main/b', 't3', 'hidden '),
      start('main/b/stream', { answer: true }),
      ...speak('main/b/stream', 't4', 'shown '),
      ...speak('main/a', 't5', 'too'),
    ])
    expect(entries.map((entry) => encoder.encode(entry)).join('')).toBe('shown \n\ntoo')
  })

  test('a blank line stands between the words of two model calls, none inside one or after a newline', () => {
    const encoder = textWire.createEncoder()
    const entries = buildRun([
      { step: '', part: startPart },
      { step: 'main/a', part: { type: 'step-start', stepType: 'llm', attempt: 1, answer: true } },
      ...speak('main/a/1', 't1', 'I will'),
      ...speak('main/a/1', 't2', ' look.'),
      ...speak('main/a/3', 't3', ''),
      ...speak('main/a/5', 't4', 'Once more.\n'),
      ...speak('main/a/7', 't5', '84'),
    ])
    expect(entries.map((entry) => encoder.encode(entry)).join('')).toBe('I will look.\n\nOnce more.\n84')
  })

  test('a path that spoke before its ancestor answers is heard once it does', () => {
    const encoder = textWire.createEncoder()
    const entries = buildRun([
      { step: '', part: startPart },
      ...speak('main/a/1', 't1', 'hidden'),
      { step: 'main/a', part: { type: 'step-start', stepType: 'llm', attempt: 2, answer: true } },
      ...speak('main/a/1', 't2', 'shown'),
    ])
    expect(entries.map((entry) => encoder.encode(entry)).join('')).toBe('shown')
  })

  test.each([
    ['plain', 'plain'],
    [{ a: 1 }, '{"a":1}'],
    [undefined, ''],
  ])('a run without an answering step sends its output: %j', (output, sent) => {
    const encoder = textWire.createEncoder()
    const [start, end] = buildRun([
      { step: '', part: startPart },
      { step: '', part: { type: 'run-end', outcome: 'completed', usage: noUsage, output } },
    ])
    expect(encoder.encode(start!) + encoder.encode(end!)).toBe(sent)
    expect(encoder.state).toBe('complete')
  })
})
