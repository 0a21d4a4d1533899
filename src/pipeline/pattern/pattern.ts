/**
 * Matches untrusted regular expressions in linear time: those of agent files and of schemas sent by servers and clients.
 * The syntax is that of JavaScript with the flag `u`, without lookarounds, back-references and flags in groups.
 */
import { parsePattern, PatternError } from './parse.ts'
import { toProgram, type Instruction } from './program.ts'

export { PatternError } from './parse.ts'

export interface Pattern {
  /** Whether the pattern matches anywhere in the text. Throws `PatternTooCostly` when the budget is used up. */
  test(text: string, budget: PatternBudget): boolean
}

const cache = new Map<string, Pattern | PatternError>()
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
  let pattern = cache.get(key)
  if (pattern === undefined) {
    if (budget !== undefined && (budget.left -= compileCost) < 0)
      throw new PatternTooCostly('There are too many patterns.')
    pattern = read(source, isLenient)
    if (cache.size >= mostKept) cache.delete(cache.keys().next().value!)
    cache.set(key, pattern)
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

/*
 * Tests whether a program matches anywhere in a text. All paths through the program are followed in parallel, so the time
 * grows with the text, not with the number of paths. Sets of positions that recur are cached as states of an automaton.
 */

/** The neighbour of a position in the text: nothing, a word character, or another character. */
type Side = 'edge' | 'word' | 'other'

interface MatchState {
  /** Instructions reached by the previous character. */
  readonly reached: readonly number[]
  readonly before: Side
  readonly closures: Map<Side, Closure>
  readonly next: Map<string, MatchState>
}

/** The states that are reached without consuming a character. */
interface Closure {
  readonly matches: boolean
  readonly chars: readonly number[]
}

/** The remaining work for all texts that are checked together. */
export interface PatternBudget {
  left: number
}

/** The text is too long for the pattern: whether it matches is unknown. */
export class PatternTooCostly extends Error {
  override readonly name = 'PatternTooCostly'
}

/** About half a second at worst. */
export const fullBudget = 5_000_000
const mostStates = 20_000

function createMatcher(program: readonly Instruction[]): (text: string, budget: PatternBudget) => boolean {
  let states = new Map<string, MatchState>()
  let stateCount = 0

  function spend(budget: PatternBudget, work: number): void {
    budget.left -= work
    if (budget.left < 0) throw new PatternTooCostly('The text is too long for its pattern.')
  }

  function stateOf(reached: number[], before: Side): MatchState {
    const key = `${before}${reached.join(',')}`
    let state = states.get(key)
    if (state === undefined) {
      stateCount += reached.length + 1
      state = { reached, before, closures: new Map(), next: new Map() }
      states.set(key, state)
    }
    return state
  }

  function closureOf(state: MatchState, after: Side, budget: PatternBudget): Closure {
    const known = state.closures.get(after)
    if (known !== undefined) return known
    const { before } = state
    const isBoundary = (before === 'word') !== (after === 'word')
    const holds = { start: before === 'edge', end: after === 'edge', boundary: isBoundary, inside: !isBoundary }
    const seen = new Uint8Array(program.length)
    const chars: number[] = []
    let matches = false
    // A match may start anywhere.
    const open = [0, ...state.reached]
    let work = 0
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (seen[at] === 1) continue
      seen[at] = 1
      work += 1
      const instruction = program[at]!
      if (instruction.type === 'match') matches = true
      else if (instruction.type === 'char') chars.push(at)
      else if (instruction.type === 'split') open.push(...instruction.to)
      else if (holds[instruction.kind]) open.push(at + 1)
    }
    spend(budget, work)
    const closure = { matches, chars: chars.toSorted((a, b) => a - b) }
    stateCount += chars.length + 1
    state.closures.set(after, closure)
    return closure
  }

  return (text, budget) => {
    if (stateCount > mostStates) {
      states = new Map()
      stateCount = 0
    }
    let state = stateOf([], 'edge')
    for (const char of text) {
      spend(budget, 1)
      const known = state.next.get(char)
      if (known !== undefined) {
        state = known
        continue
      }
      const after = isOfWord(char) ? 'word' : 'other'
      const { matches, chars } = closureOf(state, after, budget)
      if (matches) return true
      spend(budget, chars.length)
      const reached = chars.filter((at) => (program[at] as { accepts(char: string): boolean }).accepts(char))
      const next = stateOf(
        reached.map((at) => at + 1),
        after,
      )
      if (stateCount > mostStates) {
        states = new Map()
        stateCount = 0
      } else {
        stateCount += 1
        state.next.set(char, next)
      }
      state = next
    }
    return closureOf(state, 'edge', budget).matches
  }
}

function isOfWord(char: string): boolean {
  return char.length === 1 && /\w/u.test(char)
}
