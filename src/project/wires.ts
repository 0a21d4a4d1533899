/** The wires of a project, by the names that users write. */
import { MillraceError } from '../part/error.ts'
import { builtinWires } from '../wire/builtin-wires.ts'
import type { Wire } from '../wire/wire.ts'
import type { Config } from './config.ts'
import { unpack } from './packs.ts'

/** Those of the config, its packs and the registry, beside the built-in ones. Throws `bad-config` for what is no wire. */
export function wiresOf(config: Config): ReadonlyMap<string, Wire> {
  const wires = Object.entries(unpack(config).wires)
  for (const [name, wire] of wires) {
    if (typeof wire?.createEncoder === 'function' && wire.name === name) continue
    throw new MillraceError('bad-config', `wires.${name} must be a wire of that name, made with createWire.`)
  }
  return new Map([...builtinWires, ...wires])
}
