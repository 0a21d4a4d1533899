/** What the tools of a recorded run have returned: each result is given out once, to the call that it belongs to. */
import type { Entry } from '../part/entry.ts'
import { fromErrorValue, MillraceError } from '../part/error.ts'
import { equal } from '../pipeline/equal.ts'
import { jsonIn } from './facts.ts'

export interface RecordedResults {
  /** Returns or throws what the call has. Throws `not-recorded` for one that was not made. */
  ofCall(toolName: string, toolCallId: string): unknown
  /** The same for a caller that does not know the id of its call; `mcp-tool` steps have none. */
  ofServer(toolName: string, input: unknown): unknown
}

interface Result {
  toolName: string
  toolCallId: string
  input?: unknown
  give(): unknown
}

export function readResults(entries: readonly Entry[]): RecordedResults {
  const results: Result[] = []
  const ofSteps: (() => unknown)[] = []
  const steps = new Map<string, number>()
  const inputs = new Map<string, unknown>()
  for (const entry of entries) {
    if (entry.type === 'tool-call') inputs.set(entry.toolCallId, jsonIn(entry.input))
    else if (entry.type === 'tool-result') {
      const { toolName, toolCallId, result, isError } = entry
      const give = () => {
        if (isError === true) throw new Error(typeof result === 'string' ? result : JSON.stringify(result))
        return result
      }
      results.push({ toolName, toolCallId, input: inputs.get(toolCallId), give })
    } else if (entry.type === 'step-start' && entry.stepType === 'mcp-tool') {
      steps.set(entry.step, ofSteps.length)
      ofSteps.push(() => undefined)
    } else if (entry.type === 'step-finish' && steps.has(entry.step)) {
      const { result, error } = entry
      ofSteps[steps.get(entry.step)!] = () => {
        if (error !== undefined) throw fromErrorValue(error)
        return result
      }
    }
  }

  function take(isIt: (result: Result) => boolean): Result | undefined {
    const at = results.findIndex(isIt)
    return at < 0 ? undefined : results.splice(at, 1)[0]
  }

  return {
    ofCall(toolName, toolCallId) {
      const found = take((each) => each.toolCallId === toolCallId && each.toolName === toolName)
      if (found === undefined) throw notRecorded(toolName)
      return found.give()
    },
    ofServer(toolName, input) {
      const found =
        take((each) => each.toolName === toolName && equal(each.input, input)) ??
        take((each) => each.toolName === toolName)
      if (found !== undefined) return found.give()
      const next = ofSteps.shift()
      if (next === undefined) throw notRecorded(toolName)
      return next()
    },
  }
}

export const notRecordedCode = 'not-recorded'

function notRecorded(tool: string): MillraceError {
  return new MillraceError(
    notRecordedCode,
    `The recording has no result for this call of ${tool}. Record the case again with --record, or set "tools: live".`,
  )
}
