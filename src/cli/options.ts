/** Options that several commands share, and how a wrong value is told. */
import { InvalidArgumentError, Option } from 'commander'
import { MillraceError } from '../part/error.ts'
import { nearest } from '../pipeline/nearest.ts'
import { partTypes } from '../part/part-types.ts'

/** Where a command about runs finds them. */
export const whereOptions = () => [new Option('--data <dir>', 'folder of the log').default('.millrace'), urlOption()]

export const urlOption = () => new Option('--url <url>', 'ask this server instead; MILLRACE_API_KEY is sent to it')

/** Without a default of the flag's own: a folder that nobody named is treated otherwise when it is not there. */
export const dirAbout = 'folder of YAML agents (default: "agents")'

/** For an option that may be repeated. */
export function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

/** Left out, it is what the config says: no default of the flag's own may stand before that. */
export const settledData =
  'folder of the log; "none" keeps it in memory (default: record.data of the config, else ".millrace")'

export const endpointOption = () =>
  new Option('--endpoint <name=url>', 'a model server: name=[protocol+]url (repeatable)')
    .argParser((value: string, all: string[]) => [...all, value])
    .default([] as string[], 'none')

/** One of a few words. */
export function choice(flags: string, about: string, words: readonly string[]): Option {
  return new Option(flags, about).choices(words).argParser((value: string) => {
    if (!words.includes(value)) throw unknownWord(value, words)
    return value
  })
}

export const typeOption = () =>
  new Option('--type <types>', 'only parts of these types: a,b (repeatable)').argParser(
    (value: string, before: string[] | undefined) => {
      const types = value.split(',')
      for (const type of types) if (!partTypes.includes(type)) throw unknownType(type)
      return [...(before ?? []), ...types]
    },
  )

/**
 * The words of `logs --type a b <run>`, in any order: behind `--type` whatever is a type is one more, and the other is the
 * run. An option that took all words behind it would take the run, too.
 */
export function splitWords(words: readonly string[], types: readonly string[] | undefined) {
  const more = types === undefined ? [] : words.filter((word) => partTypes.includes(word))
  const [run, another] = words.filter((word) => !more.includes(word))
  if (run === undefined) throw new MillraceError('usage', 'Name a run: its id, or the beginning of it.')
  if (another !== undefined) {
    const why = types === undefined ? 'One run at a time.' : unknownType(another).message
    throw new MillraceError('usage', `"${another}" is one word too many. ${why}`)
  }
  return { run, types: types && [...types, ...more] }
}

function unknownType(type: string): InvalidArgumentError {
  const kin = partTypes.filter((each) => each.startsWith(`${type}-`))
  return kin.length > 0 ? new InvalidArgumentError(`Did you mean ${kin.join(', ')}?`) : unknownWord(type, partTypes)
}

function unknownWord(word: string, words: readonly string[]): InvalidArgumentError {
  const meant = nearest(word, words)
  return new InvalidArgumentError(`${meant === undefined ? '' : `Did you mean ${meant}? `}Known: ${words.join(', ')}.`)
}
