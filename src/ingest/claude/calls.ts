/** Claude's tool calls: their arguments in pieces, and their names, which the results do not repeat. */
import { isValidJson, toResultValue, isObject, textOf } from '../values.ts'
import type { Say } from './blocks.ts'

interface ClaudeCall {
  name: string
  /** The arguments so far; undefined once it is called. */
  pieces: string[] | undefined
  /** Arguments that came at once, with the start. */
  input: unknown
  /** Its incomplete arguments: the call counts only if a result shows that it was made. */
  cut?: string | undefined
}

export interface Calls {
  /** The id, if the content is a call. */
  begin(content: Record<string, unknown>, say: Say): string | undefined
  isKnown(id: string | undefined): boolean
  /** A piece of the arguments. */
  add(id: string, piece: unknown, say: Say): boolean
  /** `whole`: the arguments, if they are known as a whole. */
  end(id: string, whole: unknown, say: Say): void
  /** The arguments break off. They are a call only if they are whole, and not even then if `isLost`. */
  cut(id: string, isLost: boolean, say: Say): void
  /** Its result will say that it was not allowed. */
  denied(id: string | undefined): void
  result(id: string, content: Record<string, unknown>, say: Say): void
}

/** Calls whose names are remembered, with or without a result: a transcript may be of any length. */
const mostCalls = 1000

export function createCalls(): Calls {
  const calls = new Map<string, ClaudeCall>()
  const refused = new Set<string>()

  function end(id: string, whole: unknown, say: Say): void {
    const call = calls.get(id)
    if (call?.cut !== undefined) {
      const input = isObject(whole) ? JSON.stringify(whole) : call.cut === '' ? '{}' : call.cut
      call.cut = undefined
      say({ type: 'tool-call', toolCallId: id, toolName: call.name, input, providerExecuted: true })
    }
    if (call?.pieces === undefined) return
    let input = call.pieces.join('')
    if (input === '') {
      const value = isObject(whole) ? whole : call.input
      input = JSON.stringify(isObject(value) ? value : {})
      if (input !== '{}') say({ type: 'tool-input-delta', id, delta: input })
    } else if (!isValidJson(input) && isObject(whole)) input = JSON.stringify(whole)
    call.pieces = undefined
    call.input = undefined
    say({ type: 'tool-input-end', id })
    say({ type: 'tool-call', toolCallId: id, toolName: call.name, input, providerExecuted: true })
  }

  return {
    begin(content, say) {
      const { type } = content
      if (typeof type !== 'string' || !type.endsWith('tool_use')) return undefined
      const id = textOf(content['id'])
      if (id === undefined) return undefined
      const name = textOf(content['name']) ?? 'unknown'
      calls.delete(id)
      calls.set(id, { name, pieces: [], input: content['input'] })
      if (calls.size > mostCalls) {
        for (const first of calls.keys()) {
          calls.delete(first)
          break
        }
      }
      say({ type: 'tool-input-start', id, toolName: name, providerExecuted: true })
      return id
    },
    isKnown: (id) => id !== undefined && calls.has(id),
    add(id, piece, say) {
      if (typeof piece !== 'string') return false
      const pieces = calls.get(id)?.pieces
      if (piece === '' || pieces === undefined) return true
      pieces.push(piece)
      say({ type: 'tool-input-delta', id, delta: piece })
      return true
    },
    end,
    cut(id, isLost, say) {
      const call = calls.get(id)
      if (call?.pieces === undefined) return
      const input = call.pieces.join('')
      const isWhole = input === '' ? isObject(call.input) && Object.keys(call.input).length > 0 : isValidJson(input)
      if (isWhole && !isLost) {
        end(id, undefined, say)
        return
      }
      call.pieces = undefined
      call.cut = input
      say({ type: 'tool-input-end', id })
    },
    denied(id) {
      if (id !== undefined && refused.size < mostCalls) refused.add(id)
    },
    result(id, content, say) {
      // A call whose end has not come has no more arguments.
      end(id, undefined, say)
      const isDenied = refused.delete(id)
      const value = content['content']
      const type = isObject(value) ? textOf(value['type']) : undefined
      const isError = content['is_error'] === true || type?.endsWith('_error') === true
      say({
        type: 'tool-result',
        toolCallId: id,
        toolName: calls.get(id)?.name ?? 'unknown',
        result: toResultValue(value),
        isError: isError || isDenied,
        ...(isDenied && { outcome: 'denied' as const }),
      })
    },
  }
}
