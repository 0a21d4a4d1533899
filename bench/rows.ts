/** The rows: one server each, with its request. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { core, startChild, timeChild, type Child } from './child.ts'
import type { Target } from './load.ts'
import { hasProc } from './meter.ts'

export interface Row {
  /** Name for `--only`. */
  name: string
  title: string
  /** Needs the packages of `bench/peers`. */
  isPeer: boolean
  /** Whether a client disconnect stops the model call. */
  stopsWhenLeft: boolean
  target: Omit<Target, 'url'>
  /** Settings of the server, besides those that all have. */
  env?: Record<string, string>
  /** Node's arguments for a server that uses this model server. */
  args(upstream: string): string[]
  /** Node's arguments for a command that prints its version. */
  version?: readonly string[]
}

/** The row that ratios refer to. */
export const reference = 'ai-sdk-ui'

const here = import.meta.dirname
const text = 'Say something long.'
const messages = [{ role: 'user', content: text }]
const uiMessages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }]
/** AG-UI's: each request is a run in a thread of its own. */
const runInput = {
  threadId: 't{n}',
  runId: 'r{n}',
  protocolVersion: '1.0',
  messages: [{ id: 'm1', role: 'user', content: text }],
  tools: [],
  context: [],
  state: {},
  forwardedProps: {},
}

/** A row for a server that answers with frames of `{type: 'text-delta', delta}`, or with text. */
function plain(name: string, title: string, file: string, path: string, target: Partial<Target> = {}): Row {
  return {
    name,
    title,
    isPeer: file.startsWith('peers/'),
    stopsWhenLeft: true,
    target: { path, body: { messages }, mark: '"delta":"~', end: 'data: [DONE]', ...target },
    args: (upstream) => [join(here, file), `${upstream}/v1`],
  }
}

/** One row for each protocol of Millrace. */
const wires: Record<string, Omit<Target, 'url'>> = {
  text: { path: '/api/beddel/chat', body: { agentId: 'bench', messages: uiMessages }, mark: '~' },
  ui: {
    path: '/api/chat',
    body: { agentId: 'bench', messages: uiMessages },
    mark: '"delta":"~',
    end: 'data: [DONE]',
  },
  openai: {
    path: '/v1/chat/completions',
    body: { model: 'bench', messages, stream: true },
    mark: '"content":"~',
    end: 'data: [DONE]',
  },
  parts: {
    path: '/api/runs',
    body: { agentId: 'bench', input: { messages } },
    follow: '/api/runs/:id/events',
    mark: '"delta":"~',
    end: '"outcome":"completed"',
  },
  'ag-ui': { path: '/ag-ui/bench', body: runInput, mark: '"delta":"~', end: '"type":"RUN_FINISHED"' },
  'socket.io': {
    path: '',
    body: { type: 'run_agent', data: { ...runInput, forwardedProps: { agent: 'bench' } } },
    socket: true,
    mark: '"delta":"~',
    end: '"type":"RUN_FINISHED"',
  },
}

const agent = `onDisconnect: cancel
workflow:
  - id: answer
    type: llm
    config: { model: "up:bench", stream: true, messages: "$input.messages" }
`
let folder: string | undefined
let folders = 0

/** All servers share one agents folder and one cache of compiled code; each start gets a new data folder. */
function millraceFolders(): { agents: string; data: string; cache: string } {
  if (folder === undefined) {
    folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
    mkdirSync(join(folder, 'agents'))
    writeFileSync(join(folder, 'agents/bench.yaml'), agent)
  }
  return { agents: join(folder, 'agents'), data: join(folder, `data-${++folders}`), cache: join(folder, 'cache') }
}

/** Deletes everything that Millrace's servers have recorded. */
export function removeFolders(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  folder = undefined
}

interface Build {
  /** The first part of the names of its rows. */
  name: string
  title: string
  command: string
}

function millrace(build: Build, wire: string, target: Omit<Target, 'url'>, keeps: boolean): Row {
  return {
    name: `${build.name}-${wire}${keeps ? '' : '-memory'}`,
    title: `${build.title}, ${wire}, ${keeps ? 'recorded in SQLite' : 'in memory'}`,
    isPeer: false,
    // A run that was started separately continues when its reader disconnects.
    stopsWhenLeft: target.follow === undefined,
    target,
    version: [build.command, '--version'],
    args(upstream) {
      const { agents, data } = millraceFolders()
      const kept = keeps ? data : 'none'
      return [build.command, 'serve', agents, '--port', '0', '--data', kept, '--endpoint', `up=${upstream}/v1`]
    },
  }
}

function rowsOf(build: Build): Row[] {
  return [true, false].flatMap((keeps) =>
    Object.entries(wires).map(([wire, target]) => millrace(build, wire, target, keeps)),
  )
}

const thisBuild: Build = { name: 'millrace', title: 'Millrace', command: join(here, '../bin/millrace.js') }

export const rows: readonly Row[] = [
  plain('floor', 'floor: node:http by hand', 'floor.ts', '/'),
  plain('ai-sdk-ui', 'AI SDK 7 streamText, Hono', 'peers/ai-sdk-ui.js', '/api/chat', {
    body: { messages: uiMessages },
  }),
  plain('ai-sdk-provider', 'AI SDK 7 doStream, node:http', 'peers/ai-sdk-provider.js', '/'),
  plain('langchain', 'LangChain ChatOpenAI, Express', 'peers/langchain.js', '/chat'),
  plain('openai-agents', 'OpenAI Agents, Hono', 'peers/openai-agents.js', '/chat', { mark: '~', end: undefined }),
  ...rowsOf(thisBuild),
  {
    ...millrace(thisBuild, 'ui', wires['ui']!, true),
    name: 'millrace-package',
    title: 'Millrace, package decoder',
    env: { MILLRACE_DECODER: 'package' },
  },
]

/**
 * Selects rows by name or, if none has the name, by prefix: `millrace` selects all rows of Millrace. Without `--only`, selects all
 * rows; with `--quick`, all except those that keep runs in memory.
 * `before`: another checkout of Millrace, built, whose rows are called `before-…`.
 */
export function selectRows(only: readonly string[], quick = false, before?: string): Row[] {
  const earlier =
    before === undefined
      ? []
      : rowsOf({ name: 'before', title: 'Millrace before', command: join(before, 'bin/millrace.js') })
  const all = [...rows, ...earlier]
  if (only.length === 0 && quick) return all.filter(({ name }) => !name.endsWith('-memory'))
  const wanted = only.flatMap((name) => {
    const exactly = all.filter((row) => row.name === name)
    const found = exactly.length > 0 ? exactly : all.filter((row) => row.name.startsWith(`${name}-`))
    if (found.length > 0) return found
    throw new Error(`There is no row "${name}". Rows: ${all.map((row) => row.name).join(', ')}.`)
  })
  return all.filter((row) => only.length === 0 || wanted.includes(row))
}

/**
 * Starts the server of a row. Of this process's environment it gets only PATH, so that your keys and settings do not affect the
 * results. Millrace gets an API key, as in real use, so that it searches every delta for it. No delta ends with a prefix of this
 * key: such a delta would be held back until the next one.
 */
export async function startRow(
  row: Row,
  upstream: string,
  nodeArgs: readonly string[] = [],
  args: readonly string[] = row.args(upstream),
): Promise<Child> {
  return startChild({
    args: [...nodeArgs, ...(hasProc ? [] : ['--import', join(here, 'usage.ts')]), ...args],
    env: envOf(row),
    core: core.server,
    awaitReady: true,
    channel: !hasProc,
  })
}

/** The environment of a row's server: PATH, and what the row sets. */
export function envOf(row: Row): NodeJS.ProcessEnv {
  const { PATH } = process.env
  const XDG_CACHE_HOME = millraceFolders().cache
  return { PATH, XDG_CACHE_HOME, NODE_ENV: 'production', UP_API_KEY: 'Key-Of-The-Benchmark', ...row.env }
}

/** ms that the row's command takes to print its version. */
export async function timeVersion(row: Row): Promise<number | undefined> {
  return row.version && timeChild({ args: row.version, core: core.server, env: envOf(row) })
}
