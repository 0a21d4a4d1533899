/** Packs: step types, tools, callbacks and agents that others publish as a module. */
import { messageOf, MillraceError } from '../part/error.ts'
import type { Callback, PrimitiveHandler, ToolImplementation } from '../run/ports.ts'
import type { Config } from './config.ts'
import { callbackRegistry, handlerRegistry, toolRegistry } from './registries.ts'

/** What a pack's module exports, by name or as its default. */
export interface Pack {
  steps?: Record<string, PrimitiveHandler>
  tools?: Record<string, ToolImplementation>
  callbacks?: Record<string, Callback>
  /** Agent id → YAML text. Served beside the project's own; an agent of the project with the same id wins. */
  agents?: Record<string, string>
}

/** A config whose packs have been unpacked into it. */
export interface Unpacked extends Omit<Config, 'packs'> {
  tools: Record<string, ToolImplementation>
  callbacks: Record<string, Callback>
  steps: Record<string, PrimitiveHandler>
  agents: Record<string, string>
}

const kinds = ['steps', 'tools', 'callbacks', 'agents'] as const

/** Awaits the packs of a config. Throws `bad-config` for one that cannot be loaded. */
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
 * Config and packs as one; without tools (callbacks, steps) of its own a config has those of the registries. Throws
 * `bad-config`: a pack that is a promise still, a module that is no pack, or a name that two packs bring.
 */
export function unpack({ packs = [], ...config }: Config): Unpacked {
  const own = {
    steps: config.steps ?? handlerRegistry,
    tools: config.tools ?? toolRegistry,
    callbacks: config.callbacks ?? callbackRegistry,
    agents: {},
  }
  const all = { steps: empty(), tools: empty(), callbacks: empty(), agents: empty() }
  for (const [i, module] of packs.entries()) {
    const pack = read(module, i)
    for (const kind of kinds) {
      for (const [name, value] of Object.entries(pack[kind] ?? {})) {
        if (Object.hasOwn(own[kind], name)) continue
        if (Object.hasOwn(all[kind], name)) {
          const cure = `Name it under "${kind}" of the config to say which one is meant, or leave one pack out.`
          throw new MillraceError('bad-config', `Two packs bring the ${kind.slice(0, -1)} "${name}". ${cure}`)
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
    // Nobody awaits it here: its failure must not take the process down.
    void Promise.resolve(module).catch(() => undefined)
    throw new MillraceError('bad-config', `packs[${i}] is a promise: write packs: [await import('…')].`)
  }
  const isPack = (value: unknown): value is Pack =>
    typeof value === 'object' && value !== null && kinds.some((kind) => kind in value)
  const inside = (module as { default?: unknown } | null)?.default
  const pack = isPack(module) ? module : isPack(inside) ? inside : undefined
  if (pack === undefined) {
    throw new MillraceError('bad-config', `packs[${i}] is no pack: a module that exports ${kinds.join(', ')}.`)
  }
  const wrong = kinds.find((kind) => pack[kind] !== undefined && (typeof pack[kind] !== 'object' || !pack[kind]))
  if (wrong !== undefined) throw new MillraceError('bad-config', `packs[${i}].${wrong} must be an object of names.`)
  return pack
}

function empty(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>
}
