/** The server of the official SDK (`sdk-server.ts`): as a stdio config, and over HTTP as a child process of the test. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { McpServer } from '../server.ts'
import type { HttpChild, Journal } from './everything.ts'

const file = fileURLToPath(new URL('./sdk-server.ts', import.meta.url))

export type ServedEra = 'both' | 'modern' | 'legacy'

export function sdkOverStdio(journal: Journal, era: ServedEra = 'both', script = file): McpServer {
  return { command: process.execPath, args: [script], env: { JOURNAL: journal.file, ERA: era } }
}

/** Port 0 picks a free port. */
export async function startSdk(journal: Journal, era: ServedEra = 'both', port = 0, script = file): Promise<HttpChild> {
  const child = spawn(process.execPath, [script], {
    env: { PATH: process.env['PATH'], JOURNAL: journal.file, ERA: era, OVER: 'http', PORT: String(port) },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const bound = await new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      const found = /^PORT (\d+)$/m.exec(chunk.toString())
      if (found) resolve(Number(found[1]))
    })
    void exited.then(() => reject(new Error('the HTTP server did not start')))
  })
  return {
    url: `http://127.0.0.1:${bound}/mcp`,
    port: bound,
    kill: () => {
      child.kill('SIGKILL')
      return exited
    },
  }
}
