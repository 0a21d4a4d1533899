/**
 * Regular expressions from outside, matched in linear time: those of agent files and of schemas that servers and clients send.
 * They mean what they mean in JavaScript with the flag `u`. Lookarounds, back-references and flags in groups are refused.
 */
import { createMatcher, PatternTooCostly, type PatternBudget } from './matcher.ts'
import { parsePattern, PatternError } from './parse.ts'
import { toProgram } from './program.ts'

export { fullBudget, PatternTooCostly, type PatternBudget } from './matcher.ts'
export { PatternError } from './parse.ts'

export interface Pattern {
  /** Whether the pattern matches anywhere in the text. Throws `PatternTooCostly` when the budget is used up. */
  test(text: string, budget: PatternBudget): boolean
}

const kept = new Map<string, Pattern | PatternError>()
const mostKept = 200

/** What it costs of a budget to read a pattern, whatever its size. */
const compileCost = 10_000

export interface CompileOptions {
  /** Also what JavaScript takes only without the flag `u`, as other languages write it. */
  isLenient?: boolean
  /** Pays for reading a pattern that is not known yet: a schema from outside may have any number of them. */
  budget?: PatternBudget
}

/** Throws `PatternError`, and `PatternTooCostly` when the budget is used up. */
export function compilePattern(source: string, { isLenient = false, budget }: CompileOptions = {}): Pattern {
  const key = `${isLenient ? 'lenient' : 'strict'} ${source}`
  let pattern = kept.get(key)
  if (pattern === undefined) {
    if (budget !== undefined && (budget.left -= compileCost) < 0)
      throw new PatternTooCostly('There are too many patterns.')
    pattern = read(source, isLenient)
    if (kept.size >= mostKept) kept.delete(kept.keys().next().value!)
    kept.set(key, pattern)
  }
  if (pattern instanceof PatternError) throw pattern
  return pattern
}

/** What cannot be used is kept as well: to find that out costs as much. */
function read(source: string, isLenient: boolean): Pattern | PatternError {
  try {
    return { test: createMatcher(toProgram(parsePattern(source, isLenient))) }
  } catch (error) {
    if (error instanceof PatternError) return error
    throw error
  }
}
