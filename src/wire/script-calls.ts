/**
 * Calls that scripts make, for clients that show them: as data, because they are no part of the conversation, which has only the call that runs the
 * script. A call that waits for the client is sent as a call, too.
 */
import type { Entry } from '../part/entry.ts'
import { callKey } from '../fold/open-items.ts'
import { parseJson } from '../part/json.ts'
import { LazyMap } from '../fold/lazy-map.ts'

/** The name of the data. Data with the same id, that of the call, replaces it. */
export const scriptCallName = 'script-call'

export interface ScriptCallData {
  toolCallId: string
  toolName: string
  input: unknown
  /** `failed`: it rejected in the script. */
  status: 'running' | 'done' | 'failed'
  /** Its result, or why it failed. */
  output?: unknown
}

export interface ScriptCalls {
  /** What to show after this entry. */
  apply(entry: Entry): ScriptCallData | undefined
  /** The id of the call that runs the script which makes this call; for a script of the file, of its step. Undefined: no script has made the call. */
  parentOf(step: string, toolCallId: string): string | undefined
}

export function createScriptCalls(): ScriptCalls {
  return new OpenCalls()
}

/** A class, not closures: one for each open stream (decisions/0028). */
class OpenCalls implements ScriptCalls {
  readonly #open = new LazyMap<string, ScriptCallData>()

  apply(entry: Entry): ScriptCallData | undefined {
    if (entry.type === 'tool-call') {
      if (entry.via !== 'script') return undefined
      const { toolCallId, toolName } = entry
      const call: ScriptCallData = { toolCallId, toolName, input: inputOf(entry.input), status: 'running' }
      this.#open.set(callKey(entry.step, toolCallId), call)
      return call
    }
    if (entry.type !== 'tool-result' || entry.preliminary === true || this.#open.size === 0) return undefined
    const key = callKey(entry.step, entry.toolCallId)
    const call = this.#open.get(key)
    if (call === undefined) return undefined
    this.#open.delete(key)
    return { ...call, status: entry.isError === true ? 'failed' : 'done', output: entry.result }
  }

  parentOf(step: string, toolCallId: string): string | undefined {
    if (!this.#open.has(callKey(step, toolCallId))) return undefined
    return toolCallId.slice(0, toolCallId.lastIndexOf('.'))
  }
}

function inputOf(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}
