/**
 * What a program registers by assignment, as the Beddel document does: `toolRegistry.weather = …`. Used by
 * `WorkflowExecutor`, and by a runtime whose config has no tools (callbacks, steps) of its own; each looks when it is
 * made. Null-prototype records: no name reaches `Object.prototype`.
 *
 * There is one set per process. Bundlers (Next.js, for one) put a copy of this module into each of their bundles; a callback
 * that `instrumentation.ts` registers must be there for every route.
 */
import type { Callback, PrimitiveHandler, ToolImplementation } from '../run/ports.ts'
import { builtinTools } from '../run/tools/builtin-tools.ts'

interface Registries {
  handlers: Record<string, PrimitiveHandler>
  tools: Record<string, ToolImplementation>
  callbacks: Record<string, Callback>
}

/** Count it up when the shape of {@link Registries} or of what is registered changes: copies of other versions keep theirs. */
const key = Symbol.for('millrace.registries.1')
const shared = globalThis as { [key]?: Registries }

const { handlers, tools, callbacks } = (shared[key] ??= {
  handlers: record(),
  tools: Object.assign(record(), Object.fromEntries(builtinTools)),
  callbacks: record(),
})

/** Step types of your own, by the name that stands after `type:`. The built-in ones are not in it. */
export const handlerRegistry: Record<string, PrimitiveHandler> = handlers

/** Tools by name; `calculator` and `getCurrentTime` are there from the start. */
export const toolRegistry: Record<string, ToolImplementation> = tools

/** What `onFinish`, `onError` and the like may name. */
export const callbackRegistry: Record<string, Callback> = callbacks

function record<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>
}
