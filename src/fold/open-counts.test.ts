import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryRun } from '../../test/arbitrary-run.ts'
import type { Entry, RecordedPart } from '../part/entry.ts'
import { createGrammar, createOpenCounts } from './grammar.ts'
import { createOpenItems, type OpenItems } from './open-items.ts'
import { isUnder } from '../part/path.ts'

function countOf({ steps, texts, reasonings, inputs, calls, requests }: OpenItems, root: string): number {
  const paths = [...steps.keys(), ...texts.values(), ...reasonings.values()]
  for (const items of [inputs, calls, requests]) for (const { step } of items.values()) paths.push(step)
  return paths.filter((path) => isUnder(path, root)).length
}

describe('open counts of the grammar', () => {
  test('the counts equal a fresh count, for legal and for damaged runs', () => {
    const damage = fc.record({ from: fc.nat(200), count: fc.nat(4), again: fc.nat(200) })
    fc.assert(
      fc.property(arbitraryRun, fc.option(damage), (run, damaged) => {
        const entries = [...run]
        if (damaged !== null) {
          const { from, count, again } = damaged
          entries.splice(from % entries.length, count)
          if (entries.length > 0) entries.push(entries[again % entries.length]!)
        }
        const open = createOpenItems()
        const counts = createOpenCounts(open)
        const roots = new Set(['', ...entries.map(({ step }) => step)])
        for (const entry of entries) {
          counts.apply(entry)
          const wrong = [...roots].filter((root) => counts.at(root) !== countOf(open, root))
          expect(wrong).toEqual([])
        }
      }),
      { numRuns: 200 },
    )
  })

  test('checking a message with 20,000 tool calls takes seconds at most', () => {
    const said: [string, RecordedPart][] = [
      ['', { type: 'run-start', runId: 'r', agent: 'a', threadId: 't', protocol: 'p', input: {}, pipeline: '' }],
      ['main/a', { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }],
      ['main/a/1', { type: 'step-start', stepType: 'model-call', attempt: 1 }],
    ] as [string, RecordedPart][]
    const ids = Array.from({ length: 20_000 }, (_, i) => `call_${i}`)
    for (const id of ids) {
      said.push(['main/a/1', { type: 'tool-input-start', id, toolName: 'x' }])
      said.push(['main/a/1', { type: 'tool-input-end', id }])
      said.push(['main/a/1', { type: 'tool-call', toolCallId: id, toolName: 'x', input: '{}' }])
    }
    said.push(['main/a/1', { type: 'step-finish', duration: 1 }])
    const paths = ids.map((id, i) => [id, `main/a/${i + 2}`] as const)
    for (const [toolCallId, path] of paths) {
      said.push([path, { type: 'step-start', stepType: 'tool-call', attempt: 1, toolCallId, toolName: 'x' }])
    }
    for (const [toolCallId, path] of paths) {
      said.push([path, { type: 'tool-result', toolCallId, toolName: 'x', result: 1, isError: false }])
      said.push([path, { type: 'step-finish', duration: 1 }])
    }
    said.push(['main/a', { type: 'step-finish', duration: 1 }])
    const grammar = createGrammar()
    let fault: string | undefined
    said.forEach(([step, part], i) => (fault ??= grammar.check({ seq: i + 1, timestamp: 0, step, ...part } as Entry)))
    expect(fault).toBeUndefined()
    // It takes a fraction of a second; looking at every open call for every result took minutes.
  })
})
