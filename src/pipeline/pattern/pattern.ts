/**
 * Matches untrusted regular expressions in linear time: those of agent files and of schemas sent by servers and clients.
 * The syntax is that of JavaScript with the flag `u`, without lookarounds, back-references and flags in groups.
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

/** Budget used to parse a pattern of any size. */
const compileCost = 10_000

export interface CompileOptions {
  /** Also accept syntax that JavaScript allows only without the flag `u`, as other languages write it. */
  isLenient?: boolean
  /** Charged for parsing a new pattern: an untrusted schema may have any number of them. */
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

/** Returns errors too, so that they are cached: finding them costs as much. */
function read(source: string, isLenient: boolean): Pattern | PatternError {
  try {
    return { test: createMatcher(toProgram(parsePattern(source, isLenient))) }
  } catch (error) {
    if (error instanceof PatternError) return error
    throw error
  }
}
