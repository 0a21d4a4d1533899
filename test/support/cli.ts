/**
 * Commands in the process of the tests, from the source: each has its own streams, folder, environment and signals, so that many
 * run side by side, and none takes the time of a start. What only a process can show is in `cli-process.ts`.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { onTestFinished } from 'vitest'
import type { CommandContext } from '../../src/cli/context.ts'
import { runProgram } from '../../src/cli/program.ts'
import { createContext } from './command-context.ts'
import { createWatched } from './watched.ts'

export interface CommandOptions {
  cwd?: string
  env?: Record<string, string>
  /** Text on stdin; without it stdin is empty. `open`: it comes later. */
  input?: string
  open?: boolean
}

export interface Command {
  readonly out: string
  readonly err: string
  /** Resolves when stdout and stderr together hold the text; throws when the command ends first. */
  until(text: string): Promise<void>
  kill(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void
  /** Writes to its stdin, which must be open. */
  send(text: string): void
  /** Closes its stdin. */
  finish(): void
  /** Its exit code, once its output is complete. */
  exit: Promise<number>
}

/** Nothing of the machine's own keys and endpoints. */
export function environment(env: Record<string, string> = {}): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => ['PATH', 'HOME', 'TMPDIR'].includes(name))
  const given = { MILLRACE_DEMO_DELAY_MS: '0', NO_COLOR: '1', XDG_CONFIG_HOME: join(tmpdir(), 'millrace-no-config') }
  return { ...Object.fromEntries(own), ...given, ...env } as Record<string, string>
}

/** Starts `millrace …`; the test's end stops it. */
export function millrace(args: string[], options: CommandOptions = {}): Command {
  const { cwd, env, input = '', open = false } = options
  const stdin = new PassThrough()
  if (!open) stdin.end(input)
  const watched = createWatched()
  const stream = (name: 'out' | 'err') =>
    new Writable({
      decodeStrings: false,
      write(chunk: string | Buffer, _, done) {
        watched.add(name, chunk.toString())
        done()
      },
    })
  const context = createContext({
    cwd: resolve(cwd ?? '.'),
    env: environment(env),
    stdin,
    stdout: stream('out'),
    stderr: stream('err'),
  })
  const { exit } = started(args, context, watched.end)
  onTestFinished(async () => {
    if (watched.hasEnded) return
    if (args[0] === 'serve') await stopRuns(watched.text('out'), env?.['MILLRACE_API_KEY'])
    context.events.emit('SIGTERM')
    await exit
  })
  return {
    get out() {
      return watched.text('out')
    },
    get err() {
      return watched.text('err')
    },
    until: watched.until,
    send: (text) => void stdin.write(text),
    finish: () => void stdin.end(),
    kill: (signal) => void context.events.emit(signal),
    exit,
  }
}

/** Runs a command line until it ends, or exits. */
export function started(args: string[], context: CommandContext, ended: () => void): { exit: Promise<number> } {
  const { promise: exit, resolve: end } = Promise.withResolvers<number>()
  context.exit = (code) => {
    context.events.emit('exit', code)
    ended()
    end(code)
  }
  runProgram(context, args).then(
    () => context.exit(Number(context.exitCode ?? 0)),
    (error: unknown) => {
      context.stderr.write(`a command must not throw: ${(error as Error).stack}\n`)
      context.exit(1)
    },
  )
  return { exit }
}

/** A server gives active runs time to finish: those of a test have none. */
async function stopRuns(out: string, key: string | undefined): Promise<void> {
  const url = /https?:\/\/[\w.:[\]]+/u.exec(out)?.[0]
  if (url === undefined) return
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  try {
    const response = await fetch(`${url}/api/runs?status=running&limit=1000`, { headers })
    const { runs } = (await response.json()) as { runs: { id: string }[] }
    await Promise.all(runs.map(({ id }) => fetch(`${url}/api/runs/${id}/stop`, { method: 'POST', headers })))
  } catch {
    // It is stopping, or does not tell.
  }
}

/** Runs a command to its end. */
export async function ran(args: string[], options: CommandOptions = {}) {
  const command = millrace(args, options)
  const code = await command.exit
  return { code, out: command.out, err: command.err }
}

/** A server on a port of its own; resolves once it says that it is ready. */
export async function serving(args: string[], options?: CommandOptions): Promise<Command & { url: string }> {
  const command = millrace(['serve', ...args, '--port', '0'], options)
  await command.until('Try it')
  return Object.assign(command, { url: /ready at (\S+)/u.exec(command.out)![1]! })
}

/** A folder with these files, gone after the test. */
export function folder(files: Record<string, string> = {}): string {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true })
    writeFileSync(join(dir, name), text)
  }
  return dir
}

/** Another folder with what the disk holds of this one now: as if whoever uses it had been killed. */
export function killed(cwd: string): string {
  const copy = folder()
  cpSync(cwd, copy, { recursive: true })
  return copy
}
