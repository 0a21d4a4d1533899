/** Hostile recordings through every command that reads a file or a log: an end, or a message that says where; no stack, no hang. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { createProgram } from '../../src/cli/program.ts'
import { decodeEntries } from '../../src/store/encode.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { ran } from '../support/cli.ts'
import { createContext } from '../support/command-context.ts'
import { legalRuns, mutated } from './mutate.ts'

interface Recording {
  file: string
  /** Of the run in the data folder, if the store took it: as if somebody had written it there. */
  run?: string
  thread: string
}

/** `file`: what it reads of a file. `run`: of a run in the data folder. `all`: of all runs there. */
interface Reads {
  file?: (file: string) => string[]
  run?: (recording: Required<Recording>) => string[][]
  all?: string[][]
}

const flags = (run: string, ...all: string[][]) => all.map((each) => [run, ...each])

/** A new command must be named here, or below. */
const reads: Record<string, Reads> = {
  parse: { file: (file) => [file] },
  import: { file: (file) => [file, '--data', 'imported'] },
  verify: { file: (file) => [file], run: ({ run }) => [[run]], all: [['all']] },
  ps: { all: [[], ['--json'], ['--search', 'a']] },
  show: { run: ({ run }) => flags(run, [], ['--full'], ['--json'], ['--json', '--full']) },
  logs: {
    run: ({ run }) => flags(run, [], ['--raw'], ['--json'], ['--since', '1', '--type', 'text-delta,tool-call,run-end']),
  },
  replay: {
    run: ({ run }) =>
      ['text', 'parts', 'ui', 'openai', 'ag-ui'].map((format) => [run, '--speed', 'max', '--format', format]),
  },
  export: { run: ({ run }) => flags(run, [], ['--format', 'otlp', '--content']) },
  fork: {
    run: ({ run }) => flags(run, ['--list'], ['--list', '--json'], ['--at', '1'], ['--at', '1', '--agent', 'a']),
  },
  diff: {
    run: ({ run }) => [
      [run, run],
      [run, run, '--json'],
    ],
  },
  test: {
    run: ({ run }) => flags(run, ['--trust']).map(([id, ...more]) => ['--add', id!, '--name', 'added', ...more]),
  },
  threads: { run: ({ thread }) => flags(thread, [], ['--full'], ['--json']), all: [[], ['--json'], ['--search', 'a']] },
  stats: { all: [[], ['--json'], ['--by', 'day', '--since', '2000-01-01'], ['--by', 'model'], ['--by', 'tool']] },
  usage: { all: [[], ['--json'], ['--by', 'agent'], ['--by', 'tenant'], ['--by', 'key']] },
  audit: { all: [[], ['--json']] },
  query: {
    all: ['runs', 'threads', 'agents', 'steps', 'model_calls', 'tool_calls', 'requests', 'usage']
      .map((name) => [`SELECT * FROM ${name}`])
      .concat([['--list']]),
  },
  reindex: { all: [[]] },
  answer: { run: ({ run }) => flags(run, ['--list'], ['approve', '--agent', 'a']) },
  stop: { run: ({ run }) => [[run]] },
  tell: { run: ({ run }) => flags(run, ['Go on']) },
  compact: {
    all: [
      ['--older-than', '0s', '--dry-run'],
      ['--older-than', '0s'],
    ],
  },
  prune: { all: [['--older-than', '100000d', '--dry-run']] },
  rm: { run: ({ run }) => [[run, '--yes']] },
}
/** They read agents, or nothing. */
const others = [
  'mcp',
  'init',
  'serve',
  'migrate',
  'run',
  'chat',
  'check',
  'schema',
  'completion',
  'help',
  'keys',
  'login',
  'logout',
]

const root = mkdtempSync(join(tmpdir(), 'millrace-hostile-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const recordings: Recording[] = []

beforeAll(async () => {
  mkdirSync(join(root, 'agents'))
  const agent = 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]'
  writeFileSync(join(root, 'agents/a.yaml'), agent)
  const store = sqliteStore(join(folderOf('.millrace'), 'millrace.db'))
  const legal = legalRuns(1)
  // As many of them as the store takes: most are refused by what an import checks.
  for (let seed = 1, taken = 0; taken < 20; seed++) {
    const { text, id } = mutated(legal, seed)
    const file = join(root, `${seed}.ndjson`)
    const recording: Recording = { file, thread: `thread_${seed}` }
    if (await isTaken(() => store.log.append(id, 1, entriesOf(text)))) {
      recording.run = id
      const row = (await store.runs.get(id))!
      recording.thread = row.threadId
      // So that the run can be a test case.
      if (/^[\w-]{1,60}$/u.test(row.agent)) writeFileSync(join(root, `agents/${row.agent}.yaml`), agent)
      taken++
    }
    writeFileSync(file, text)
    recordings.push(recording)
  }
  await store.close()
}, 60_000)

function folderOf(name: string): string {
  const dir = join(root, name)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  return dir
}

function entriesOf(text: string): Entry[] {
  return decodeEntries(text.split('\n').filter((line) => line !== ''))
}

async function isTaken(append: () => Promise<unknown>): Promise<boolean> {
  try {
    await append()
    return true
  } catch {
    return false
  }
}

/** What Node says, and no message of a command. */
const ofProgram =
  /\b(?:Type|Range|Reference|Syntax)Error\b|\bundefined\b|must not throw|is not (?:a function|iterable|a constructor)|Cannot (?:read|convert|mix)|Maximum call stack|Invalid (?:array|string|time|count|Date)|circular|^millrace: The "\w+" argument|^millrace: Unexpected/mu

/** What is wrong with how a command has ended. */
async function fault(args: string[]): Promise<string[]> {
  const { code, out, err } = await ran(args, { cwd: root })
  const said = `millrace ${args.join(' ')}: ${code}\n${err.slice(0, 1000)}`
  const isOdd =
    ![0, 1, 2].includes(code) ||
    // An error of the program, and not of what it was given.
    /^\s+at .*:\d+:\d+\)?$/mu.test(err + out) ||
    ofProgram.test(err) ||
    (code !== 0 && err.trim() === '' && out.trim() === '')
  return isOdd ? [said] : []
}

async function faults(all: string[][]): Promise<string[]> {
  const found: string[] = []
  for (const args of all) found.push(...(await fault(args)))
  return found
}

describe('hostile recordings: commands', () => {
  test('each command is in one of the two lists', () => {
    const names = createProgram(createContext()).commands.map((each) => each.name())
    expect([...Object.keys(reads), ...others].toSorted()).toEqual([...new Set([...names, 'help'])].toSorted())
  })

  test.each(Object.entries(reads))('millrace %s', { timeout: 300_000 }, async (name, { file, run, all = [] }) => {
    const given = [
      ...recordings.flatMap((each) => (file === undefined ? [] : [file(each.file)])),
      ...recordings.flatMap((each) =>
        run === undefined || each.run === undefined ? [] : run(each as Required<Recording>),
      ),
      ...all,
    ]
    expect(await faults(given.map((args) => [name, ...args]))).toEqual([])
  })

  test('a file that is refused is refused with its line', async () => {
    const said = await Promise.all(
      recordings.map(async ({ file }) => {
        const { code, err } = await ran(['import', file, '--data', 'again', '--from', 'ndjson'], { cwd: root })
        return code === 0 || /: (?:line \d+: |no entries)/u.test(err) ? '' : err
      }),
    )
    expect(said.filter((each) => each !== '')).toEqual([])
  })
})
