/**
 * The built-in step types as handlers, so that a program can wrap one: `const original = handlerRegistry['llm']`. A built-in works on
 * the log of its run, which its handler reaches through the context that the wrapper was given.
 */
import { MillraceError } from '../../part/error.ts'
import { builtinSteps } from '../../pipeline/names.ts'
import type { ExecutionContext, PrimitiveHandler } from '../ports.ts'

/** For all copies of this module: bundlers put one into each bundle, and the registries are one per process. */
const runKey = Symbol.for('millrace.run-builtin.1')
const typeKey = Symbol.for('millrace.builtin-type.1')

/** Runs the built-in of the step that the context belongs to. */
export type RunBuiltin = (type: string, config: unknown) => Promise<unknown>

export function createBuiltinHandler(type: string): PrimitiveHandler {
  const handler: PrimitiveHandler = (config, context) => {
    const run = (context as { [runKey]?: RunBuiltin } | undefined)?.[runKey]
    if (run !== undefined) return run(type, config)
    const cure = 'Call it in a handler that replaces it, with the context that this handler was given.'
    throw new MillraceError('bad-handler', `The built-in step type "${type}" runs in a step of that type only. ${cure}`)
  }
  return Object.assign(handler, { [typeKey]: type })
}

/** Enumerable, so that a copy (`{ ...context }`) runs the built-in as well. */
export function withBuiltin(context: ExecutionContext, run: RunBuiltin): ExecutionContext {
  return Object.assign(context, { [runKey]: run })
}

/** What a config and the registry name, without the built-ins that nobody replaced. Throws `bad-config`. */
export function ownHandlers(steps: Readonly<Record<string, PrimitiveHandler>>): Map<string, PrimitiveHandler> {
  const own = new Map<string, PrimitiveHandler>()
  for (const [name, handler] of Object.entries(steps)) {
    if (typeof handler !== 'function' && builtinSteps.some((type) => type === name)) {
      const cure = `Register a function (config, context) => … or delete handlerRegistry["${name}"].`
      throw new MillraceError('bad-config', `The step type "${name}" is no function. ${cure}`)
    }
    const type = (handler as { [typeKey]?: string })[typeKey]
    if (type === undefined) own.set(name, handler)
    else if (type !== name) {
      const cure = `Write type: ${type} in the file, or register a function that replaces "${type}" under its own name.`
      throw new MillraceError(
        'bad-config',
        `The step type "${name}" is the built-in "${type}" under another name. ${cure}`,
      )
    }
  }
  return own
}
