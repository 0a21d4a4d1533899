/** Tells the log what an MCP server says of a call while it goes on: few entries, however often it says something. */
import { callKey } from '../fold/open-items.ts'
import { progressName } from '../fold/progress-words.ts'
import type { Scope } from './scope.ts'

/** ms between two entries in the first minute. Later it grows with the time that the call takes, so that hours have hundreds of entries. */
const shortest = 1000
const share = 60

export interface Progress {
  /** The same words again are not told. */
  say(words: string): void
  /** What waits to be told is dropped: the call has ended. */
  end(): void
}

export function pacedProgress(tell: (words: string) => void, now: () => number): Progress {
  const began = now()
  let told: string | undefined
  let next = -Infinity
  let waiting: string | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false

  function put(words: string): void {
    told = words
    next = now() + Math.max(shortest, (now() - began) / share)
    tell(words)
  }

  return {
    say(words) {
      if (isOver) return
      waiting = words
      if (timer !== undefined) return
      const left = next - now()
      if (left <= 0) {
        if (words !== told) put(words)
        return
      }
      timer = setTimeout(() => {
        timer = undefined
        if (waiting !== told) put(waiting!)
      }, left)
      timer.unref?.()
    },
    end() {
      isOver = true
      clearTimeout(timer)
    },
  }
}

/** `call`: of a model. */
export function progressAt(
  scope: Scope,
  path: string,
  call: { toolCallId: string; toolName: string } | undefined,
): Progress {
  const tell = (words: string) => {
    if (scope.signal.aborted || !scope.state.open.steps.has(path)) return
    if (call === undefined) {
      return scope.emit(path, { type: 'data', name: progressName, id: path, data: words, transient: true })
    }
    if (!scope.state.open.calls.has(callKey(path, call.toolCallId))) return
    scope.emit(path, { type: 'tool-result', ...call, result: words, preliminary: true })
  }
  return pacedProgress(tell, () => scope.now())
}
