/** What is measured: a server each, and how it is asked. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { core, startChild, type Child } from './child.ts'
import type { Target } from './load.ts'
import { hasProc } from './meter.ts'

export interface Row {
  /** As `--only` names it. */
  name: string
  title: string
  /** Needs the packages of `bench/peers`. */
  isPeer: boolean
  /** A client that leaves stops the model call. */
  stopsWhenLeft: boolean
  target: Omit<Target, 'url'>
  /** Node's arguments for a server that asks this model server. */
  args(upstream: string): string[]
}

/** What ratios are of. */
export const reference = 'ai-sdk-ui'

const here = import.meta.dirname
const text = 'Say something long.'
const messages = [{ role: 'user', content: text }]
const uiMessages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }]

/** Rows of servers that answer a plain body with frames of `{type: 'text-delta', delta}`, or with text. */
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

/** Each protocol that Millrace speaks is a line. */
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
}

const command = join(here, '../bin/millrace.js')
const agent = `onDisconnect: cancel
workflow:
  - id: answer
    type: llm
    config: { model: "up:bench", stream: true, messages: "$input.messages" }
`
let folder: string | undefined
let folders = 0

/** One agents folder for all, a data folder for each start. */
function millraceFolders(): { agents: string; data: string } {
  if (folder === undefined) {
    folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
    mkdirSync(join(folder, 'agents'))
    writeFileSync(join(folder, 'agents/bench.yaml'), agent)
  }
  return { agents: join(folder, 'agents'), data: join(folder, `data-${++folders}`) }
}

/** What Millrace's servers have recorded goes. */
export function removeFolders(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  folder = undefined
}

function millrace(wire: string, target: Omit<Target, 'url'>, keeps: boolean): Row {
  return {
    name: `millrace-${wire}${keeps ? '' : '-memory'}`,
    title: `Millrace, ${wire}, ${keeps ? 'recorded in SQLite' : 'in memory'}`,
    isPeer: false,
    // Whoever follows a run that was started on its own may leave it alone.
    stopsWhenLeft: target.follow === undefined,
    target,
    args(upstream) {
      const { agents, data } = millraceFolders()
      const kept = keeps ? data : 'none'
      return [command, 'serve', agents, '--port', '0', '--data', kept, '--endpoint', `up=${upstream}/v1`]
    },
  }
}

export const rows: readonly Row[] = [
  plain('floor', 'floor: node:http by hand', 'floor.ts', '/'),
  plain('ai-sdk-ui', 'AI SDK 7 streamText, Hono', 'peers/ai-sdk-ui.js', '/api/chat', {
    body: { messages: uiMessages },
  }),
  plain('ai-sdk-provider', 'AI SDK 7 doStream, node:http', 'peers/ai-sdk-provider.js', '/'),
  plain('langchain', 'LangChain ChatOpenAI, Express', 'peers/langchain.js', '/chat'),
  plain('openai-agents', 'OpenAI Agents, Hono', 'peers/openai-agents.js', '/chat', { mark: '~', end: undefined }),
  ...[true, false].flatMap((keeps) => Object.entries(wires).map(([wire, target]) => millrace(wire, target, keeps))),
]

/**
 * Those that `--only` names, by name or, where there is none of it, by its beginning: `millrace` is all of Millrace's. Without
 * `--only`: all, and of a quick look those that a user has.
 */
export function selectRows(only: readonly string[], quick = false): Row[] {
  if (only.length === 0 && quick) return rows.filter(({ name }) => !name.endsWith('-memory'))
  const wanted = only.flatMap((name) => {
    const exactly = rows.filter((row) => row.name === name)
    const found = exactly.length > 0 ? exactly : rows.filter((row) => row.name.startsWith(`${name}-`))
    if (found.length > 0) return found
    throw new Error(`There is no row "${name}". Rows: ${rows.map((row) => row.name).join(', ')}.`)
  })
  return rows.filter((row) => only.length === 0 || wanted.includes(row))
}

/**
 * Starts the server of a row. It sees nothing of this process's environment but the path: keys and settings of whoever
 * measures must not change a row. Millrace gets a key, as it has one wherever it is used, and looks for it in every delta; one
 * that no delta could be the beginning of, for then that is held back and comes with the next.
 */
export async function startRow(row: Row, upstream: string, nodeArgs: readonly string[] = []): Promise<Child> {
  return startChild({
    args: [...nodeArgs, ...(hasProc ? [] : ['--import', join(here, 'usage.ts')]), ...row.args(upstream)],
    env: { PATH: process.env['PATH'], NODE_ENV: 'production', UP_API_KEY: 'Key-Of-The-Benchmark' },
    core: core.server,
    awaitReady: true,
    channel: !hasProc,
  })
}
