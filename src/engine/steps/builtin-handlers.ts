/**
 * The built-in step types as handlers, so that programs can wrap them: `const original = handlerRegistry['llm']`. A built-in handler
 * needs the `context` that the wrapper received, which links it to the log of the run.
 */
import { MillraceError } from '../../part/error.ts'
import { builtinSteps } from '../../pipeline/names.ts'
import type { ExecutionContext, PrimitiveHandler } from '../registry.ts'

/** Global symbols: bundlers may copy this module into each bundle, but all copies share the registries of the process. */
const runKey = Symbol.for('millrace.run-builtin.1')
const typeKey = Symbol.for('millrace.builtin-type.1')

/** Runs the built-in of the step that the context belongs to. */
export type RunBuiltin = (type: string, config: unknown) => Promise<unknown>

export function createBuiltinHandler(type: string): PrimitiveHandler {
  const handler: PrimitiveHandler = (config, context) => {
    const run = (context as { [runKey]?: RunBuiltin } | undefined)?.[runKey]
    if (run !== undefined) return run(type, config)
    const cure = 'Call it from the handler that replaces it, and pass that handler’s context.'
    throw new MillraceError('bad-handler', `The built-in "${type}" only runs in a step of that type. ${cure}`)
  }
  return Object.assign(handler, { [typeKey]: type })
}

/** The property is enumerable, so that a copy (`{ ...context }`) works too. */
export function withBuiltin(context: ExecutionContext, run: RunBuiltin): ExecutionContext {
  return Object.assign(context, { [runKey]: run })
}

/** The handlers of a config and the registry, without unchanged built-ins. Throws `bad-config`. */
export function ownHandlers(steps: Readonly<Record<string, PrimitiveHandler>>): Map<string, PrimitiveHandler> {
  const own = new Map<string, PrimitiveHandler>()
  for (const [name, handler] of Object.entries(steps)) {
    if (typeof handler !== 'function' && builtinSteps.some((type) => type === name)) {
      const cure = `Register a function (config, context) => … or delete handlerRegistry["${name}"].`
      throw new MillraceError('bad-config', `The step type "${name}" is not a function. ${cure}`)
    }
    const type = (handler as { [typeKey]?: string })[typeKey]
    if (type === undefined) own.set(name, handler)
    else if (type !== name) {
      const cure = `Use type: ${type} in the agent file, or register your replacement under the name "${type}".`
      throw new MillraceError(
        'bad-config',
        `The step type "${name}" is the built-in "${type}" under another name. ${cure}`,
      )
    }
  }
  return own
}
