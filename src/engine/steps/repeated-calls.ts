/**
 * Whether a call of a loop was made before. A model may make thousands of calls in a message, so that the calls before are
 * looked up by what they say and not compared one by one.
 */
import type { Call, Reply } from '../../fold/reply.ts'
import { parseInput } from '../../fold/tool-loop.ts'

/**
 * The first call of these replies with the same tool and arguments that gave a result. One that failed does not count. The
 * order of keys makes no difference.
 */
export function sameCall(call: Call, replies: readonly Reply[]): Call | undefined {
  const key = keyOf(call)
  for (const reply of replies) {
    const found = resultsOf(reply).get(key)
    if (found !== undefined) return found
  }
  return undefined
}

const keys = new WeakMap<Call, string>()
const results = new WeakMap<Reply, ReadonlyMap<string, Call>>()

function keyOf(call: Call): string {
  const known = keys.get(call)
  if (known !== undefined) return known
  const key = JSON.stringify([call.toolName, parseInput(call.input)], sorted)
  keys.set(call, key)
  return key
}

function resultsOf(reply: Reply): ReadonlyMap<string, Call> {
  const known = results.get(reply)
  if (known !== undefined) return known
  const found = new Map<string, Call>()
  for (const call of reply.calls) {
    const { result } = call
    const gave = result !== undefined && result.isError !== true && result.outcome === undefined
    if (gave && !found.has(keyOf(call))) found.set(keyOf(call), call)
  }
  // Until all have their outcomes there may be more.
  if (reply.calls.every(({ result }) => result !== undefined)) results.set(reply, found)
  return found
}

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
