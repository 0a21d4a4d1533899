/** `npm run bench`: compares Millrace with its peers. Each server runs in its own process on its own core. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { core, startChild, startLoad, startSpinner, startUpstream } from './child.ts'
import { machineFacts } from './machine.ts'
import { awaitRest } from './meter.ts'
import { readCommandLine, usage, type CommandLine, type ScenarioName } from './options.ts'
import { installPeers } from './peers.ts'
import { formatProfile } from './profile.ts'
import { removeFolders, selectRows } from './rows.ts'
import type { Bench, Result } from './scenario.ts'
import { abort } from './scenarios/abort.ts'
import { beside } from './scenarios/beside.ts'
import { boot } from './scenarios/boot.ts'
import { carry } from './scenarios/carry.ts'
import { cold } from './scenarios/cold.ts'
import { formatReadme } from './readme.ts'
import { firstDelta } from './scenarios/first-delta.ts'
import { inProcess } from './scenarios/in-process.ts'
import { long } from './scenarios/long.ts'
import { instances } from './scenarios/instances.ts'
import { open } from './scenarios/open.ts'
import { paced } from './scenarios/paced.ts'
import { readers } from './scenarios/readers.ts'
import { readme } from './scenarios/readme.ts'
import { sideBySide } from './scenarios/side-by-side.ts'
import { throughput } from './scenarios/throughput.ts'
import { formatResult } from './table.ts'

const scenarios: Record<ScenarioName, (bench: Bench) => Promise<Result[]>> = {
  readme,
  throughput: async (bench) => [await throughput(bench)],
  'side-by-side': async (bench) => [await sideBySide(bench)],
  'first-delta': async (bench) => [await firstDelta(bench)],
  open,
  paced: async (bench) => [await paced(bench)],
  carry: async (bench) => [await carry(bench)],
  long,
  cold: async (bench) => [await cold(bench)],
  readers: async (bench) => [await readers(bench)],
  abort: async (bench) => [await abort(bench)],
  boot: async (bench) => [await boot(bench)],
  beside: async (bench) => [await beside(bench)],
  'in-process': inProcess,
  provider: ({ options }) => alone('provider.ts', options),
  ingest: ({ options }) => alone('ingest.ts', options),
  thread: ({ options }) => alone('thread.ts', options),
  suspended: ({ options }) => alone('suspended.ts', options),
  agents: ({ options }) => alone('agents.ts', options),
  skills: ({ options }) => alone('skills.ts', options),
  steps: ({ options }) => alone('steps.ts', options, { isPinned: false }),
  'mcp-tasks': ({ options }) => alone('mcp-tasks.ts', options, { isPinned: false }),
  scripts: async ({ options, rows, say: tell }) => {
    if (rows.some(({ isPeer }) => isPeer)) await installPeers(tell)
    return alone('scripts.ts', options, { isPinned: false })
  },
  fairness: ({ options }) => alone('fairness.ts', options),
  record: ({ options }) => alone('record.ts', options),
  web: ({ options }) => alone('web.ts', options, { isPinned: false }),
  big: ({ options }) => alone('big.ts', options, { isPinned: false, timeout: 3_600_000 }),
  redis: async (bench) => [...(await alone('redis.ts', bench.options)), await instances(bench)],
  log: async ({ options }) => {
    const [result] = await alone('log.ts', { ...options, slowDisk: false })
    if (!hasStrace) return [{ ...result!, notes: [...result!.notes, 'The slow-disk row is missing: it needs strace.'] }]
    const [slow] = await alone('log.ts', { ...options, slowDisk: true }, { under: slowDisk })
    return [{ ...result!, rows: [...result!.rows, ...slow!.rows] }]
  },
}

/** They ask no server of a row. */
const withoutServers: ReadonlySet<ScenarioName> = new Set([
  'beside',
  'in-process',
  'provider',
  'ingest',
  'thread',
  'big',
  'suspended',
  'agents',
  'skills',
  'steps',
  'mcp-tasks',
  'scripts',
  'fairness',
  'record',
  'web',
  'log',
  'redis',
])

/** Delays each fsync of a process by 20 ms. */
const slowDisk = ['strace', '-f', '--seccomp-bpf', '-qq', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync']
slowDisk.push('-e', 'inject=fsync,fdatasync:delay_exit=20000')
const hasStrace = spawnSync('strace', ['-V']).status === 0

async function main(commandLine: CommandLine): Promise<void> {
  const rows = selectRows(commandLine.only, commandLine.options.quick, commandLine.before)
  const asksServers = commandLine.scenarios.some((name) => !withoutServers.has(name))
  if (asksServers && rows.some(({ isPeer }) => isPeer)) await installPeers(say)
  process.on('exit', removeFolders)
  const machine = machineFacts()
  process.stdout.write(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}\n`)
  if (!machine.pinned)
    process.stdout.write('The server shares its core with the load generator (no taskset, or a single core).\n')
  if (machine.busy > 1)
    process.stdout.write(`This machine is busy (load ${machine.busy}): the numbers are unreliable.\n`)
  const upstream = await startUpstream()
  const load = await startLoad()
  const spinner = await startSpinner()
  const rest: Bench['rest'] = (servers) => (commandLine.options.quick ? Promise.resolve() : awaitRest(servers))
  const results: Result[] = []
  for (const name of commandLine.scenarios) {
    const progress = (line: string) => say(`${name}: ${line}`)
    const bench = { rows, upstream, load, spinner, options: commandLine.options, rest, say: progress }
    for (const result of await scenarios[name](bench)) {
      results.push(result)
      process.stdout.write(`\n${result.scenario}: ${formatResult(result)}\n`)
    }
  }
  await Promise.all([load, upstream, spinner].map((child) => child.stop()))
  if (commandLine.scenarios.includes('readme')) process.stdout.write(`\n${formatReadme(results, machine)}\n`)

  const { profile, ...options } = commandLine.options
  const file = join(import.meta.dirname, 'results', `${commandLine.name}.json`)
  mkdirSync(join(import.meta.dirname, 'results'), { recursive: true })
  writeFileSync(file, `${JSON.stringify({ machine, options, results }, undefined, 2)}\n`)
  say(`written: bench/results/${commandLine.name}.json`)
  if (profile !== undefined) {
    for (const { name, title } of rows) {
      const written = join(profile, `${name}.cpuprofile`)
      if (existsSync(written)) process.stdout.write(`\n${title}: CPU\n${formatProfile(written)}\n`)
    }
  }
  if (results.some((result) => result.rows.some(({ failed }) => failed !== undefined))) process.exitCode = 1
}

/** Runs a scenario in its own process, on the server's core unless a browser shares its work. */
async function alone(
  file: string,
  options: object,
  {
    under = [],
    isPinned = true,
    timeout = 600_000,
  }: { under?: readonly string[]; isPinned?: boolean; timeout?: number } = {},
): Promise<Result[]> {
  const args = ['--expose-gc', join(import.meta.dirname, file)]
  const child = await startChild({
    args,
    core: isPinned ? core.server : undefined,
    awaitReady: false,
    channel: true,
    under,
  })
  try {
    return await child.call<Result[]>('measure', options, timeout)
  } finally {
    await child.stop()
  }
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.on(signal, () => process.exit(code))
try {
  const commandLine = readCommandLine(process.argv.slice(2))
  if (commandLine.help) process.stdout.write(usage)
  else await main(commandLine)
} catch (error) {
  say(error instanceof Error ? error.message : String(error))
  // Exiting kills the child processes.
  process.exit(2)
}
