/** A server as people run it: a process of its own, that can be killed. Needs `npm run build`, as `npm test` does. */
import { spawn, execFile, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'

const command = resolve(join(import.meta.dirname, '../../bin/millrace.js'))

export interface ServerProcess {
  url: string
  pid: number
  stderr(): string
  /** SIGKILL: nothing is flushed, nobody is told. Resolves when the process is gone. */
  kill(): Promise<void>
  signal(signal: NodeJS.Signals): void
  /** Its exit code, or the signal that ended it. */
  exit: Promise<number | NodeJS.Signals>
}

export function spawnServer(dir: string, data: string, ...flags: string[]): Promise<ServerProcess> {
  // Its own cache is filled by those that end. One that is killed keeps nothing of what it has compiled.
  const { NODE_COMPILE_CACHE: _, ...env } = process.env
  return spawnServerIn(env, dir, data, ...flags)
}

/** `env`: all variables of its process. */
export async function spawnServerIn(
  env: NodeJS.ProcessEnv,
  dir: string,
  data: string,
  ...flags: string[]
): Promise<ServerProcess> {
  const args = [command, 'serve', dir, '--port', '0', '--data', data, ...flags]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
  const gone = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  // A test that is ended from outside leaves nothing behind.
  const kill = () => void child.kill('SIGKILL')
  process.once('exit', kill)
  void gone.then(() => process.off('exit', kill))
  const url = await Promise.race([readUrl(child), gone.then(() => undefined)])
  if (url === undefined) throw new Error(`the server did not start: ${stderr}`)
  return {
    url,
    pid: child.pid!,
    stderr: () => stderr,
    async kill() {
      child.kill('SIGKILL')
      await gone
    },
    signal: (signal) => void child.kill(signal),
    exit: gone.then(([code, signal]) => code ?? signal!),
  }
}

async function readUrl(child: ChildProcess): Promise<string | undefined> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const url = /https?:\/\/\S+/u.exec(line)?.[0]
    if (url !== undefined) return url
  }
  return undefined
}

/** Runs a command to its end. */
export function millrace(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((done) => {
    execFile(process.execPath, [command, ...args], { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr })
    })
  })
}
