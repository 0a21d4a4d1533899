/**
 * What a program registers by assignment, as the Beddel document does: `toolRegistry.weather = …`. Used by
 * `WorkflowExecutor`, and by a runtime whose config has no tools (callbacks, steps) of its own; each looks when it is
 * made. Null-prototype records: no name reaches `Object.prototype`.
 *
 * There is one set per process. Bundlers (Next.js, for one) put a copy of this module into each of their bundles; a callback
 * that `instrumentation.ts` registers must be there for every route.
 */
import type { Callback, PrimitiveHandler, ToolImplementation } from '../run/ports.ts'
import { builtinSteps } from '../pipeline/names.ts'
import { createBuiltinHandler } from '../run/steps/builtin-handlers.ts'
import { builtinTools } from '../run/tools/builtin-tools.ts'

interface Registries {
  handlers: Record<string, PrimitiveHandler> & Record<(typeof builtinSteps)[number], PrimitiveHandler>
  tools: Record<string, ToolImplementation>
  callbacks: Record<string, Callback>
}

/** Count it up when the shape of {@link Registries} or of what is registered changes: copies of other versions keep theirs. */
const key = Symbol.for('millrace.registries.2')
const shared = globalThis as { [key]?: Registries }

const builtinHandlers = Object.fromEntries(builtinSteps.map((type) => [type, createBuiltinHandler(type)]))

const { handlers, tools, callbacks } = (shared[key] ??= {
  handlers: Object.assign(record(), builtinHandlers) as Registries['handlers'],
  tools: Object.assign(record(), Object.fromEntries(builtinTools)),
  callbacks: record(),
})

/**
 * Step types, by the name that stands after `type:`. The built-in ones are there from the start: assign a handler of your own to
 * replace one, and call the one that was there, with the context that yours was given, to wrap it.
 */
export const handlerRegistry: Registries['handlers'] = handlers

/** Tools by name; `calculator` and `getCurrentTime` are there from the start. */
export const toolRegistry: Record<string, ToolImplementation> = tools

/** What `onFinish`, `onError` and the like may name. */
export const callbackRegistry: Record<string, Callback> = callbacks

function record<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>
}
