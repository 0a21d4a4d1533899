/** Packs: step types, tools, callbacks, protocols and agents, published as a module. */
import { messageOf, MillraceError } from '../part/error.ts'
import type { Callback, PrimitiveHandler } from '../engine/registry.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import type { Wire } from '../wire/wire.ts'
import type { Config } from './config.ts'
import { callbackRegistry, handlerRegistry, toolRegistry, wireRegistry } from './registries.ts'

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
