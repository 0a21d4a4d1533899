import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Entry } from '../src/part/entry.ts'
import { createGrammar } from '../src/fold/grammar.ts'
import { arbitraryAgentRun, arbitraryRun } from './arbitrary-run.ts'

test('every random run is legal', () => {
  fc.assert(
    fc.property(fc.oneof(arbitraryRun, arbitraryAgentRun), (entries) => {
      const grammar = createGrammar()
      for (const entry of entries) expect(grammar.check(entry)).toBeUndefined()
      expect(grammar.end()).toBeUndefined()
    }),
    { numRuns: 300 },
  )
})

test('random runs hold everything that wires must cope with', () => {
  const seen = new Set<string>()
  const note = (entry: Entry) => {
    seen.add(entry.type)
    if (entry.type === 'run-end') seen.add(entry.outcome)
    if (entry.type === 'tool-result') seen.add(entry.outcome ?? 'returned')
  }
  for (const entries of fc.sample(arbitraryRun, { numRuns: 300, seed: 1 })) entries.forEach(note)
  for (const type of ['suspend', 'resume', 'step-reset', 'tool-input-delta', 'source', 'aborted', 'failed', 'denied']) {
    expect(seen).toContain(type)
  }
})
