/** Options and help texts that several commands share, and the errors for wrong values. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import { MillraceError } from '../../part/error.ts'
import { nearest } from '../../pipeline/nearest.ts'
import { partTypes } from '../../part/part.ts'
import { builtinWires } from '../../wire/builtin-wires.ts'
import type { Wire } from '../../wire/wire.ts'
import type { CommandContext } from '../context.ts'

/** Where a command about runs finds them: its last options. */
export function addConnectionOptions(command: Command): void {
  command.addOption(localDataOption()).addOption(storeOption()).addOption(urlOption())
}

export const localDataOption = () => new Option('--data <dir>', 'Data folder with the log').default('.millrace')

/** `--data` was given, so the command is about that folder even if the runs of servers are in a shared store. */
export function isNamed(command: Command): boolean {
  return command.getOptionValueSource('data') === 'cli'
}

export const storeOption = () =>
  new Option(
    '--store <url>',
    'Store that several servers share, such as redis://host:6379 (default: MILLRACE_STORE, or record.store in the config)',
  )

export const urlOption = () =>
  new Option(
    '--url <url>',
    'Use the server at this URL, with MILLRACE_API_KEY as its key or as millrace login has signed in',
  )

/** No default value: a missing folder is an error only when `--dir` was given. */
export const dirAbout = 'Folder of YAML agents (default: "agents")'

export const runAbout = 'Run id, or a unique prefix of one'

/** The last section of a command's help. */
export function examples(...lines: string[]): string {
  return `\nExample${lines.length === 1 ? '' : 's'}:\n${lines.map((line) => `  ${line}`).join('\n')}`
}

/** For an option that may be repeated. */
export function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

/** No default value: without the flag, the config decides. */
export const dataAbout =
  'Data folder for the log; "none" keeps runs in memory (default: record.data in the config, or ".millrace")'

export const endpointOption = () =>
  new Option('--endpoint <name=url>', 'Add a model server as name=[protocol+]url (repeatable)')
    .argParser((value: string, all: string[]) => [...all, value])
    .default([] as string[], 'none')

export const debugOption = () => new Option('--debug', 'Print which decoder reads the streams of each model to stderr')

/** One of a few words. */
export function choice(flags: string, about: string, words: readonly string[]): Option {
  return new Option(flags, about).choices(words).argParser((value: string) => {
    if (!words.includes(value)) throw unknownWord(value, words)
    return value
  })
}

export const typeOption = () =>
  new Option('--type <types>', 'Only entries of these types, separated by commas (repeatable)').argParser(
    (value: string, before: string[] | undefined) => {
      const types = value.split(',')
      for (const type of types) if (!partTypes.includes(type)) throw unknownType(type)
      return [...(before ?? []), ...types]
    },
  )

/**
 * Splits the arguments of `logs --type a b <run>`, in any order: with `--type`, every argument that is a part type is one
 * more type, and the remaining one is the run. A variadic option would swallow the run.
 */
export function splitWords(words: readonly string[], types: readonly string[] | undefined) {
  const more = types === undefined ? [] : words.filter((word) => partTypes.includes(word))
  const [run, another] = words.filter((word) => !more.includes(word))
  if (run === undefined) throw new MillraceError('usage', 'Which run? Pass its id, or a unique prefix of it.')
  if (another !== undefined) {
    const why = types === undefined ? 'Pass one run.' : unknownType(another).message
    throw new MillraceError('usage', `Unexpected argument "${another}". ${why}`)
  }
  return { run, types: types && [...types, ...more] }
}

function unknownType(type: string): InvalidArgumentError {
  const kin = partTypes.filter((each) => each.startsWith(`${type}-`))
  return kin.length > 0 ? new InvalidArgumentError(`Did you mean ${kin.join(', ')}?`) : unknownWord(type, partTypes)
}

export function unknownWord(word: string, words: readonly string[]): InvalidArgumentError {
  const meant = nearest(word, words)
  return new InvalidArgumentError(`${meant === undefined ? '' : `Did you mean ${meant}? `}Known: ${words.join(', ')}.`)
}

export const trustOption = (about = 'Of a run that was recorded elsewhere: what its recording names may run here') =>
  new Option('--trust', about)

/** Packs and configs may add formats, so any name is accepted until the config is loaded. */
export const formatOption = () =>
  new Option('--format <wire>', 'Output format')
    .choices([...builtinWires.keys()])
    .argParser((name: string) => name)
    .default('text')

/** The wire that `--format` names: a built-in one, or one of the config in the agents folder. Throws `usage`. */
export async function namedWire(context: CommandContext, name: string, dir = 'agents'): Promise<Wire> {
  const builtin = builtinWires.get(name)
  if (builtin !== undefined) return builtin
  const { loadConfig } = await import('../../project/load-config.ts')
  const { wiresOf } = await import('../../project/packs.ts')
  const wires = wiresOf(await loadConfig(context.path(dir)))
  const wire = wires.get(name)
  if (wire !== undefined) return wire
  const { message } = unknownWord(name, [...wires.keys()])
  throw new MillraceError('usage', `option '--format <wire>' argument '${name}' is invalid. ${message}`)
}
