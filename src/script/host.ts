/**
 * What a guest may say to the outside: texts only, each checked, so that code of the guest that got hold of the function by which it says them gains nothing. It
 * collects what a script has said until the next state.
 */
import { listNames, nearest } from '../pipeline/nearest.ts'
import type { ConsoleLine, Script, ScriptCall, ScriptError, ScriptState } from './sandbox.ts'
import { limitError, locate, toScriptError } from './script-error.ts'

export interface Host {
  /** Undefined: it was taken note of. A text: it was refused, or the answer to `near`. */
  said(what: string, texts: readonly string[]): string | undefined
  /** Calls without a result: numbers and names. */
  open: Map<number, string>
  /** How the script has ended. */
  ended: { value: string } | { error: ScriptError } | undefined
  /** What was said since the last time. */
  take(): Pick<ScriptState, 'calls' | 'console'>
}

export function createHost({ code, toolNames, limits }: Script): Host {
  let news: ReturnType<Host['take']> = { calls: [], console: [] }
  /** Calls; bytes of their arguments since the last state; characters of the console. */
  let [made, bytes, logged] = [0, 0, 0]
  const tools = new Set(toolNames)
  const open = new Map<number, string>()

  function call(kind: string, name: string, input: string): string | undefined {
    const size = Buffer.byteLength(input)
    if (size > limits.callValue) return limitError('callValue', limits, size).message
    // They leave the memory of the VM, and its limit.
    bytes += size
    if (bytes > limits.memory) return 'is too much at once: await some of the calls first.'
    if (made === limits.calls || !isKind(kind) || (kind === 'tool' && !tools.has(name))) return 'is refused.'
    if (host.ended !== undefined) return undefined
    news.calls.push({ n: ++made, kind, name, input })
    open.set(made, name)
    return undefined
  }

  const host: Host = {
    open,
    ended: undefined,
    said(what, [first = '', second = '', third = '']) {
      if (what === 'call') return call(first, second, third)
      if (what === 'near') {
        const meant = nearest(first, toolNames)
        return meant === undefined ? ` There are: ${listNames(toolNames)}.` : ` Did you mean ${meant}?`
      }
      if (what === 'log') {
        logged += second.length + 1
        // The guest has cut it, and has added one line.
        if (isLevel(first) && logged < limits.console + 200) news.console.push({ level: first, text: second })
      } else if (what === 'done') {
        const size = Buffer.byteLength(first)
        host.ended ??= size > limits.value ? { error: limitError('value', limits, size) } : { value: first }
      } else if (what === 'failed') host.ended ??= { error: locate(toScriptError(first), code) }
      return undefined
    },
    take() {
      const taken = news
      news = { calls: [], console: [] }
      bytes = 0
      return taken
    },
  }
  return host
}

const isKind = (kind: string): kind is ScriptCall['kind'] => ['tool', 'ask', 'describe'].includes(kind)
const isLevel = (level: string): level is ConsoleLine['level'] =>
  ['debug', 'log', 'info', 'warn', 'error'].includes(level)
