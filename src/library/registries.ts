/**
 * What a program registers by assignment, as the Beddel document does: `toolRegistry.weather = …`. Used by
 * `WorkflowExecutor`, and by a runtime whose config has no tools (callbacks, steps) of its own; each looks when it is
 * made. Null-prototype records: no name reaches `Object.prototype`.
 */
import type { Callback, PrimitiveHandler, ToolImplementation } from '../run/ports.ts'
import { builtinTools } from '../run/tools/builtin-tools.ts'

/** Step types of your own, by the name that stands after `type:`. The built-in ones are not in it. */
export const handlerRegistry: Record<string, PrimitiveHandler> = record()

/** Tools by name; `calculator` and `getCurrentTime` are there from the start. */
export const toolRegistry: Record<string, ToolImplementation> = Object.assign(
  record(),
  Object.fromEntries(builtinTools),
)

/** What `onFinish`, `onError` and the like may name. */
export const callbackRegistry: Record<string, Callback> = record()

function record<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>
}
