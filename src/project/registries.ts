/**
 * Registries to which a program assigns, as in the Beddel document: `toolRegistry.weather = …`. `WorkflowExecutor` reads
 * them, and so does a runtime whose config has no `tools` (`callbacks`, `steps`); both read them once, when they are created.
 * They are null-prototype records, so no name reaches `Object.prototype`.
 *
 * There is one set per process: bundlers such as Next.js copy this module into each bundle, and a callback that
 * `instrumentation.ts` registers must be available to every route.
 */
import type { Callback, PrimitiveHandler } from '../engine/registry.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import { builtinSteps } from '../pipeline/names.ts'
import { createBuiltinHandler } from '../engine/steps/builtin-handlers.ts'
import { builtinTools } from '../tools/builtin-tools.ts'
import { builtinWires } from '../wire/builtin-wires.ts'
import type { Wire } from '../wire/wire.ts'

interface Registries {
  handlers: Record<string, PrimitiveHandler> & Record<(typeof builtinSteps)[number], PrimitiveHandler>
  tools: Record<string, ToolImplementation>
  callbacks: Record<string, Callback>
  wires: Record<string, Wire>
}

/** Increment the number when the shape of {@link Registries} or of its values changes: copies of other versions keep theirs. */
const key = Symbol.for('millrace.registries.3')
const shared = globalThis as { [key]?: Registries }

const builtinHandlers = Object.fromEntries(builtinSteps.map((type) => [type, createBuiltinHandler(type)]))

const { handlers, tools, callbacks, wires } = (shared[key] ??= {
  handlers: Object.assign(record(), builtinHandlers) as Registries['handlers'],
  tools: Object.assign(record(), Object.fromEntries(builtinTools)),
  callbacks: record(),
  wires: Object.assign(record(), Object.fromEntries(builtinWires)),
})

/**
 * Step types, by their name in `type:`. The built-in ones are already registered. Assign your own handler to replace one; to
 * wrap it, call the original with the context that your handler receives.
 */
export const handlerRegistry: Registries['handlers'] = handlers

/** Tools by name. `calculator` and `getCurrentTime` are already registered. */
export const toolRegistry: Record<string, ToolImplementation> = tools

/** Callbacks that `onFinish`, `onError` and similar keys may name. */
export const callbackRegistry: Record<string, Callback> = callbacks

/** Protocols by the names that `run --format` and `POST /api/chat?format=` take. The built-in ones are already registered. */
export const wireRegistry: Record<string, Wire> = wires

function record<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>
}
