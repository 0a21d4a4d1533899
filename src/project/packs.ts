/** Packs: step types, tools, callbacks, protocols and agents, published as a module. */
import { messageOf, MillraceError } from '../part/error.ts'
import type { Callback, PrimitiveHandler } from '../engine/registry.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import type { Wire } from '../wire/wire.ts'
import type { Config } from './config.ts'
import { builtinSteps } from '../pipeline/names.ts'
import { createBuiltinHandler } from '../engine/steps/builtin-handlers.ts'
import { builtinTools } from '../tools/builtin-tools.ts'
import { builtinWires } from '../wire/builtin-wires.ts'

/** The exports of a pack's module, named or as its default export. */
export interface Pack {
  steps?: Record<string, PrimitiveHandler>
  tools?: Record<string, ToolImplementation>
  callbacks?: Record<string, Callback>
  wires?: Record<string, Wire>
  /** Agent id → YAML text. Served along with the project's agents; those override agents of the same id. */
  agents?: Record<string, string>
}

/** A config merged with its packs. */
export interface Unpacked extends Omit<Config, 'packs'> {
  tools: Record<string, ToolImplementation>
  callbacks: Record<string, Callback>
  steps: Record<string, PrimitiveHandler>
  wires: Record<string, Wire>
  agents: Record<string, string>
}

const kinds = ['steps', 'tools', 'callbacks', 'wires', 'agents'] as const

/** Awaits the packs of a config. Throws `bad-config` when one cannot be loaded. */
export async function awaitPacks(config: Config): Promise<Config> {
  const packs = await Promise.all(
    (config.packs ?? []).map(async (pack, i) => {
      try {
        return await pack
      } catch (error) {
        throw new MillraceError('bad-config', `packs[${i}] cannot be loaded: ${messageOf(error)}`, { cause: error })
      }
    }),
  )
  return { ...config, packs }
}

/**
 * Merges a config with its packs. If the config has no `tools` (`callbacks`, `steps`, `wires`), those of the registries are used.
 * Throws `bad-config` for a pack that is still a promise, a module that is not a pack, and a name that two packs define.
 */
export function unpack({ packs = [], ...config }: Config): Unpacked {
  const own = {
    steps: config.steps ?? handlerRegistry,
    tools: config.tools ?? toolRegistry,
    callbacks: config.callbacks ?? callbackRegistry,
    wires: config.wires ?? wireRegistry,
    agents: {},
  }
  const all = { steps: empty(), tools: empty(), callbacks: empty(), wires: empty(), agents: empty() }
  for (const [i, module] of packs.entries()) {
    const pack = read(module, i)
    for (const kind of kinds) {
      for (const [name, value] of Object.entries(pack[kind] ?? {})) {
        if (Object.hasOwn(own[kind], name)) continue
        if (Object.hasOwn(all[kind], name)) {
          const cure = `Define it under "${kind}" in the config to choose one, or remove one of the packs.`
          throw new MillraceError('bad-config', `Two packs define the ${kind.slice(0, -1)} "${name}". ${cure}`)
        }
        all[kind][name] = value
      }
    }
  }
  for (const kind of kinds) Object.assign(all[kind], own[kind])
  return { ...config, ...(all as Pick<Unpacked, (typeof kinds)[number]>) }
}

function read(module: Pack | PromiseLike<Pack>, i: number): Pack {
  if (typeof module === 'object' && module !== null && 'then' in module) {
    // Nothing awaits it here: an unhandled rejection would end the process.
    void Promise.resolve(module).catch(() => undefined)
    throw new MillraceError('bad-config', `packs[${i}] is a promise: await it, as in packs: [await import('…')].`)
  }
  const isPack = (value: unknown): value is Pack =>
    typeof value === 'object' && value !== null && kinds.some((kind) => kind in value)
  const inside = (module as { default?: unknown } | null)?.default
  const pack = isPack(module) ? module : isPack(inside) ? inside : undefined
  if (pack === undefined) {
    throw new MillraceError(
      'bad-config',
      `packs[${i}] is not a pack: it must export at least one of ${kinds.join(', ')}.`,
    )
  }
  const wrong = kinds.find((kind) => pack[kind] !== undefined && (typeof pack[kind] !== 'object' || !pack[kind]))
  if (wrong !== undefined)
    throw new MillraceError('bad-config', `packs[${i}].${wrong} must be an object keyed by name.`)
  return pack
}

function empty(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>
}

/**
 * Registries to which a program assigns, as in the Beddel document: `toolRegistry.weather = …`. `WorkflowExecutor` reads
 * them, and so does a runtime whose config has no `tools` (`callbacks`, `steps`); both read them once, when they are created.
 * They are null-prototype records, so no name reaches `Object.prototype`.
 *
 * There is one set per process: bundlers such as Next.js copy this module into each bundle, and a callback that
 * `instrumentation.ts` registers must be available to every route.
 */
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

/** Tools by name. The built-in ones are already registered. */
export const toolRegistry: Record<string, ToolImplementation> = tools

/** Callbacks that `onFinish`, `onError` and similar keys may name. */
export const callbackRegistry: Record<string, Callback> = callbacks

/** Protocols by the names that `run --format` and `POST /api/chat?format=` take. The built-in ones are already registered. */
export const wireRegistry: Record<string, Wire> = wires

function record<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>
}

/* The wires of a project, by the names that users write. */

/** Those of the config, its packs and the registry, beside the built-in ones. Throws `bad-config` for a value that is no wire. */
export function wiresOf(config: Config): ReadonlyMap<string, Wire> {
  const wires = Object.entries(unpack(config).wires)
  for (const [name, wire] of wires) {
    if (typeof wire?.createEncoder === 'function' && wire.name === name) continue
    throw new MillraceError('bad-config', `wires.${name} must be a wire of that name, made with createWire.`)
  }
  return new Map([...builtinWires, ...wires])
}
