/**
 * Whether a call of a loop was made before. A model may make thousands of calls in a message, so that the calls before are
 * looked up by what they say and not compared one by one.
 */
import { parseInput, type Call, type Turn } from '../../fold/turns.ts'

/**
 * The first call of these turns with the same tool and arguments that gave a result. One that failed does not count. The
 * order of keys makes no difference.
 */
export function sameCall(call: Call, turns: readonly Turn[]): Call | undefined {
  const key = keyOf(call)
  for (const turn of turns) {
    const found = resultsOf(turn).get(key)
    if (found !== undefined) return found
  }
  return undefined
}

const keys = new WeakMap<Call, string>()
const results = new WeakMap<Turn, ReadonlyMap<string, Call>>()

function keyOf(call: Call): string {
  const known = keys.get(call)
  if (known !== undefined) return known
  const key = JSON.stringify([call.toolName, parseInput(call.input)], sorted)
  keys.set(call, key)
  return key
}

function resultsOf(turn: Turn): ReadonlyMap<string, Call> {
  const known = results.get(turn)
  if (known !== undefined) return known
  const found = new Map<string, Call>()
  for (const call of turn.calls) {
    const { result } = call
    const gave = result !== undefined && result.isError !== true && result.outcome === undefined
    if (gave && !found.has(keyOf(call))) found.set(keyOf(call), call)
  }
  // Until all have their outcomes there may be more.
  if (turn.calls.every(({ result }) => result !== undefined)) results.set(turn, found)
  return found
}

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
