/** The reference server of the MCP project: as a stdio config, and over HTTP as a child process of the test. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { McpStdioServer } from '../server.ts'

const entry = import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js')
const lineServer = fileURLToPath(new URL('./line-server.ts', import.meta.url))

/** A file to which servers write their pids and the requests they receive. */
export function createJournal() {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-mcp-'))
  const file = join(folder, 'journal')
  const lines = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])
  return {
    file,
    lines,
    pids: () => lines().flatMap((line) => (line.startsWith('pid ') ? [Number(line.slice(4))] : [])),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
export type Journal = ReturnType<typeof createJournal>

const writePid = `require('fs').appendFileSync(process.env.JOURNAL, 'pid ' + process.pid + '\\n')`

export function everything(journal: Journal, before = ''): McpStdioServer {
  const script = `${writePid}; ${before}; import(process.argv[1])`
  return { command: process.execPath, args: ['-e', script, entry], env: { JOURNAL: journal.file } }
}

/** Started as `npx` does it: the command is a shell, the server its child. */
export function underShell(journal: Journal): McpStdioServer {
  const { command, args = [] } = everything(journal)
  const script = `echo "pid $$" >> "$JOURNAL"; "$0" "$@"; true`
  return { command: '/bin/sh', args: ['-c', script, command, ...args], env: { JOURNAL: journal.file } }
}

/** Our own server, for behaviour that the reference server lacks. */
export function lines(journal: Journal): McpStdioServer {
  return { command: process.execPath, args: [lineServer], env: { JOURNAL: journal.file } }
}

/** Uses a server and exits without closing it; resolves with the exit code. */
export async function exitWithoutClosing(journal: Journal): Promise<number | null> {
  const deaf = everything(journal, 'setInterval(() => {}, 1000)')
  const script = `
    import { createMcpPool } from ${JSON.stringify(new URL('../pool.ts', import.meta.url))}
    const pool = createMcpPool({ deaf: ${JSON.stringify(deaf)} })
    process.exit((await pool.call('deaf', 'echo', { message: 'a' })) === 'Echo: a' ? 7 : 1)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' })
  return new Promise((resolve) => child.once('exit', resolve))
}

export interface HttpChild {
  url: string
  port: number
  kill(): Promise<void>
}

/** Listens on 127.0.0.1 only, for which the server has no option. Port 0 picks a free port. */
export async function startEverything(port = 0): Promise<HttpChild> {
  const script = `
    const { Server } = require('net')
    const { listen } = Server.prototype
    Server.prototype.listen = function (port, ...rest) {
      this.once('listening', () => console.log('PORT ' + this.address().port))
      return listen.call(this, port, '127.0.0.1', ...rest)
    }
    process.argv.push('streamableHttp')
    import(process.argv[1])`
  return listening(['-e', script, entry], { PORT: String(port) })
}

/** A server that writes `PORT <number>` when it listens. `env` is all that it has, beside the path. */
export async function listening(args: readonly string[], env: NodeJS.ProcessEnv): Promise<HttpChild> {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      const found = /^PORT (\d+)$/m.exec(chunk.toString())
      if (found) resolve(Number(found[1]))
    })
    void exited.then(() => reject(new Error('the HTTP server did not start')))
  })
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    kill: () => {
      child.kill('SIGKILL')
      return exited
    },
  }
}

/** Zombies count as gone: an orphan is reaped by init. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
