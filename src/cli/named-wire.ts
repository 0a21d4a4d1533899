/** The wire that `--format` names: a built-in one, or one of the config in the agents folder. */
import type { CommandContext } from './context.ts'
import { MillraceError } from '../part/error.ts'
import { loadConfig } from '../project/load-config.ts'
import { wiresOf } from '../project/wires.ts'
import { builtinWires } from '../wire/builtin-wires.ts'
import type { Wire } from '../wire/wire.ts'
import { unknownWord } from './commands/options.ts'

/** Throws `usage`. */
export async function namedWire(context: CommandContext, name: string, dir = 'agents'): Promise<Wire> {
  const builtin = builtinWires.get(name)
  if (builtin !== undefined) return builtin
  const wires = wiresOf(await loadConfig(context.path(dir)))
  const wire = wires.get(name)
  if (wire !== undefined) return wire
  const { message } = unknownWord(name, [...wires.keys()])
  throw new MillraceError('usage', `option '--format <wire>' argument '${name}' is invalid. ${message}`)
}
