/** The command line of the benchmark. */
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Options } from './scenario.ts'

export const usage = `npm run bench [-- scenario… options]

  readme        the table of the README: throughput, first-delta (after 8,000 requests to each server), paced and
                open of its rows, in twenty minutes
  throughput    parallel streams at full speed: deltas/s, CPU per delta, peak memory
  side-by-side  CPU per delta of a row and the reference at the same time: this ratio holds even on a busy machine
  first-delta   one stream at a time: latency in ms that a server adds to the first delta
  open          many slow streams: memory per stream, latency of deltas
  paced         1,000 streams of 20 deltas/s: CPU per delta, and how late deltas arrive
  carry         many streams at increasing speed: maximum deltas/s before deltas arrive late
  long          a run of a million deltas: memory and CPU per delta as it grows; a new server on a run of 100,000: ms to
                the first frame
  cold          ms until the first delta before and after the system has dropped the file cache (Linux): 2 minutes a row
  readers       one run with 200 readers: CPU of the server for a delta of a reader (only rows parts)
  abort         a client disconnects: ms until the model connection is closed
  boot          ms from spawn to ready, and to the version printed
  in-process    CPU per delta for each stage of Millrace, without sockets
  provider      CPU per delta of the AI SDK's providers, compared with a hand-written reader
  ingest        CPU of the parsers of CLI agents, beside JSON.parse alone: µs a line, MB/s
  suspended     ms until a runtime has taken over a database with 10,000 suspended runs
  agents        µs that an agent tool costs above a call-agent step
  skills        CPU ms to load an agent with 100 skills, and without
  steps         ms from start to first step, step to step, of an agent of five turns, from word to reader; beside DBOS
  mcp-tasks     % of a core that 100 polled MCP tasks take
  scripts       CPU, memory and lateness of 50 and 300 scripts at once, CPU of a call; beside quickjs-emscripten
  fairness      ms to the first delta of a tenant, alone and beside one that sends a hundred times as much
  record        a run of a million deltas: written, filled into tables, queried, searched, replayed, compacted
  log           the log alone: appends/s, also with readers, or with a second process locking the file
  redis         SQLite beside Redis: append until seen, entries/s; servers on Redis: deltas/s, CPU per delta, takeover
  web           the page in Chromium: first paint, size, a run of 50 MB, a run of 10,000 steps that streams
  thread        one chat turn in a thread of 10 and of 10,000 runs
  beside        40 paced streams on the larger store of big: how late deltas are alone, beside searches, and during a prune
  big           queries of a store of 1,000 runs and of 300,000, which it makes once and keeps: half an hour, 3 GB

  --only row,row   run only these rows; floor,millrace installs no other packages
  --before dir     also measure the rows of another checkout of Millrace, built, as before-text, before-ui …
  --reference row  the row that ratios refer to, where it is measured: --only millrace-ui,before-ui
                   --before ../old --reference before-ui shows what a change costs
  --rounds n       measured rounds (default 7; 3 for paced; 1 for open, carry and cold)
  --streams n      parallel streams in throughput (default 50)
  --deltas n       deltas per answer in throughput (default 500)
  --seconds n      duration of a row in each round (default 2)
  --open n,n       numbers of streams for open (default 2000,10000); carry uses the first
  --paced n        number of streams for paced (default 1000)
  --subjects a,b   in in-process, beside the AI SDK only these, such as ui-SQLite
  --warm n         in in-process, seconds before the first measurement (default 1.2): a server optimises its code for 20
  --requests n     in first-delta and cold, requests to each server before the first measurement (default 500 and 2500); a
                   server has optimised its code after some thousands
  --rate n         deltas a second of each stream in paced (default 20)
  --quick          one short round with small answers, without the rows that keep runs in memory: checks in under a
                   minute per scenario that everything works; do not compare its numbers
  --folder dir     where big keeps its stores (default: millrace-big in the folder for temporary files)
  --profile dir    write a CPU profile of each server to this folder and print its most expensive functions
  --name name      write the results to bench/results/<name>.json (default latest, which git ignores)

Without a scenario it runs all but readme, cold, beside and big, in about forty minutes. Compare only ratios of the same run, on an otherwise idle machine.
`

export const scenarioNames = [
  'readme',
  'throughput',
  'side-by-side',
  'first-delta',
  'open',
  'paced',
  'carry',
  'long',
  'cold',
  'readers',
  'abort',
  'boot',
  'in-process',
  'provider',
  'ingest',
  'suspended',
  'agents',
  'skills',
  'steps',
  'mcp-tasks',
  'scripts',
  'fairness',
  'record',
  'log',
  'redis',
  'web',
  'thread',
  'beside',
  'big',
] as const
export type ScenarioName = (typeof scenarioNames)[number]
/** They repeat others, or take long. */
const onlyByName: ReadonlySet<ScenarioName> = new Set(['readme', 'cold', 'beside', 'big'])

export interface CommandLine {
  scenarios: ScenarioName[]
  only: string[]
  /** The folder of another checkout. */
  before: string | undefined
  name: string
  help: boolean
  options: Options
}

/** Throws on unknown arguments, listing the valid ones. */
export function readCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      only: { type: 'string', default: '' },
      before: { type: 'string' },
      reference: { type: 'string' },
      rounds: { type: 'string' },
      streams: { type: 'string' },
      deltas: { type: 'string' },
      seconds: { type: 'string' },
      open: { type: 'string' },
      paced: { type: 'string' },
      rate: { type: 'string' },
      subjects: { type: 'string' },
      warm: { type: 'string' },
      requests: { type: 'string' },
      folder: { type: 'string', default: join(tmpdir(), 'millrace-big') },
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
    throw new Error('--name must be a file name of letters, digits, dots, dashes and underscores.')
  type Counted = 'rounds' | 'streams' | 'deltas' | 'seconds' | 'paced' | 'rate' | 'warm' | 'requests'
  const number = (key: Counted, otherwise: number) =>
    values[key] === undefined ? otherwise : positive(values[key], key, key !== 'seconds' && key !== 'warm')
  return {
    scenarios: scenarios.length === 0 ? scenarioNames.filter((name) => !onlyByName.has(name)) : scenarios,
    only: values.only === '' ? [] : values.only.split(','),
    before: values.before === undefined ? undefined : resolve(values.before),
    name: values.name,
    help: values.help,
    options: {
      rounds: values.rounds === undefined && !quick ? undefined : number('rounds', 1),
      streams: number('streams', quick ? 20 : 50),
      deltas: number('deltas', quick ? 100 : 500),
      seconds: number('seconds', quick ? 0.5 : 2),
      open: (values.open ?? (quick ? '200' : '2000,10000')).split(',').map((each) => positive(each, 'open', true)),
      paced: number('paced', quick ? 200 : 1000),
      rate: number('rate', 20),
      subjects: values.subjects?.split(','),
      warm: number('warm', quick ? 0.3 : 1.2),
      requests: values.requests === undefined && !quick ? undefined : number('requests', 250),
      folder: resolve(values.folder),
      before: values.before === undefined ? undefined : resolve(values.before),
      profile: values.profile,
      reference: values.reference,
      quick,
    },
  }
}

function positive(text: string, option: string, whole: boolean): number {
  const value = Number(text)
  if (value > 0 && (!whole || Number.isInteger(value))) return value
  throw new Error(`--${option} must be a ${whole ? 'whole ' : ''}number above 0, not "${text}".`)
}
