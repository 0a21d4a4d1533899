/**
 * Regular expressions from outside, matched in linear time: those of agent files and of schemas that servers and clients send.
 * They mean what they mean in JavaScript with the flag `u`. Lookarounds, back-references and flags in groups are refused.
 */
import { createMatcher, type PatternBudget } from './matcher.ts'
import { parsePattern } from './parse.ts'
import { toProgram } from './program.ts'

export { fullBudget, PatternTooCostly, type PatternBudget } from './matcher.ts'
export { PatternError } from './parse.ts'

export interface Pattern {
  /** Whether the pattern matches anywhere in the text. Throws `PatternTooCostly` when the budget is used up. */
  test(text: string, budget: PatternBudget): boolean
}

const kept = new Map<string, Pattern>()
const mostKept = 200

/** Throws `PatternError`. `isLenient`: also what JavaScript takes only without the flag `u`, as other languages write it. */
export function compilePattern(source: string, { isLenient = false } = {}): Pattern {
  const key = `${isLenient ? 'lenient' : 'strict'} ${source}`
  let pattern = kept.get(key)
  if (pattern === undefined) {
    pattern = { test: createMatcher(toProgram(parsePattern(source, isLenient))) }
    if (kept.size >= mostKept) kept.delete(kept.keys().next().value!)
    kept.set(key, pattern)
  }
  return pattern
}
