/** The command line of the benchmark. */
import { parseArgs } from 'node:util'
import type { Options } from './scenario.ts'

export const usage = `npm run bench [-- scenario… options]

  throughput    streams at once, deltas as fast as they come: deltas/s, CPU per delta, peak memory
  side-by-side  CPU per delta of each and of the reference at once: the ratio that holds on a machine that is not quiet
  first-delta   one stream at a time: ms that a server adds until the first delta
  open          many streams that say little: memory of each, lateness of deltas
  carry         as many streams, saying more and more: how much until deltas come late
  abort         a client leaves: ms until the model's connection is closed
  boot          ms from spawn to ready
  in-process    CPU per delta of each part of Millrace, without sockets
  provider      CPU per delta of the AI SDK's providers, beside a reader written by hand
  log           the log alone: appends/s, with readers, with another process in the file

  --only row,row   some rows; floor,millrace needs no package of others
  --rounds n       rounds that count (default 7; 1 for open and carry)
  --streams n      streams at a time of throughput (50)
  --deltas n       deltas of an answer of throughput (500)
  --seconds n      of a row in a round (2)
  --open n,n       streams that open holds (200,2000); carry holds the last
  --quick          one short round of small answers, without the rows that keep runs in memory: shows in under a minute
                   per scenario that everything works; its numbers mean little
  --profile dir    write a CPU profile of each server there, and tell its most expensive functions
  --name name      results go to bench/results/<name>.json (latest, which git ignores)

All of it takes about twelve minutes. Only ratios within one run on a quiet machine mean much.
`

export const scenarioNames = [
  'throughput',
  'side-by-side',
  'first-delta',
  'open',
  'carry',
  'abort',
  'boot',
  'in-process',
  'provider',
  'log',
] as const
export type ScenarioName = (typeof scenarioNames)[number]

export interface CommandLine {
  scenarios: ScenarioName[]
  only: string[]
  name: string
  help: boolean
  options: Options
}

/** Throws on whatever it does not know, with what there is. */
export function readCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      only: { type: 'string', default: '' },
      rounds: { type: 'string' },
      streams: { type: 'string' },
      deltas: { type: 'string' },
      seconds: { type: 'string' },
      open: { type: 'string' },
      quick: { type: 'boolean', default: false },
      profile: { type: 'string' },
      name: { type: 'string', default: 'latest' },
      help: { type: 'boolean', default: false },
    },
  })
  const { quick } = values
  const scenarios = positionals.map((name) => {
    const known = scenarioNames.find((each) => each === name)
    if (known === undefined) {
      throw new Error(`There is no scenario "${name}". Scenarios: ${scenarioNames.join(', ')}.`)
    }
    return known
  })
  if (!/^[\w.-]+$/u.test(values.name))
    throw new Error('--name is the name of a file: letters, digits, dots and dashes.')
  const number = (key: 'rounds' | 'streams' | 'deltas' | 'seconds', otherwise: number) =>
    values[key] === undefined ? otherwise : positive(values[key], key, key !== 'seconds')
  return {
    scenarios: scenarios.length === 0 ? [...scenarioNames] : scenarios,
    only: values.only === '' ? [] : values.only.split(','),
    name: values.name,
    help: values.help,
    options: {
      rounds: values.rounds === undefined && !quick ? undefined : number('rounds', 1),
      streams: number('streams', quick ? 20 : 50),
      deltas: number('deltas', quick ? 100 : 500),
      seconds: number('seconds', quick ? 0.5 : 2),
      open: (values.open ?? (quick ? '200' : '200,2000')).split(',').map((each) => positive(each, 'open', true)),
      profile: values.profile,
      quick,
    },
  }
}

function positive(text: string, option: string, whole: boolean): number {
  const value = Number(text)
  if (value > 0 && (!whole || Number.isInteger(value))) return value
  throw new Error(`--${option} is a ${whole ? 'whole ' : ''}number above 0, not "${text}".`)
}
