/** The built command as a user's shell runs it: a real process, its output as it comes, its exit code. Needs `npm run build`. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { onTestFinished } from 'vitest'
import { environment, type Command, type CommandOptions } from './cli.ts'
import { createWatched } from './watched.ts'

const bin = resolve('bin/millrace.js')

export interface CommandProcess extends Omit<Command, 'kill'> {
  pid: number
  /** With SIGKILL nothing is flushed, and nobody is told. */
  kill(signal: NodeJS.Signals): void
  /** Closes our end of its stdout, as `| head` does. */
  hangUp(): void
}

export interface ProcessOptions extends CommandOptions {
  /** Flags for Node itself. */
  node?: string[]
  /** Another Node than the one that runs the tests. */
  execPath?: string
}

const signals: Partial<Record<NodeJS.Signals, number>> = { SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }

/** Starts `millrace …`; the test's end kills it. */
export function millrace(args: string[], options: ProcessOptions = {}): CommandProcess {
  const { cwd, env = {}, input = '', open = false, node = [], execPath = process.execPath } = options
  if (!existsSync('dist/cli/main.js')) throw new Error('dist is missing: npm run build comes before these tests')
  const child = spawn(execPath, [...node, bin, ...args], { cwd, env: environment(env) })
  const watched = createWatched()
  child.stdout.setEncoding('utf8').on('data', (text: string) => watched.add('out', text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => watched.add('err', text))
  child.stdin.on('error', () => undefined)
  if (!open) child.stdin.end(input)
  const exit = new Promise<number>((done) => {
    child.on('close', (code, signal) => {
      watched.end()
      // 128 + n after signal n.
      done(code ?? 128 + (signals[signal!] ?? 0))
    })
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exit
  })
  return {
    pid: child.pid!,
    get out() {
      return watched.text('out')
    },
    get err() {
      return watched.text('err')
    },
    until: watched.until,
    send: (text) => void child.stdin.write(text),
    finish: () => void child.stdin.end(),
    kill: (signal) => void child.kill(signal),
    hangUp: () => void child.stdout.destroy(),
    exit,
  }
}

/** Runs a command to its end. */
export async function ran(args: string[], options: ProcessOptions = {}) {
  const command = millrace(args, options)
  const code = await command.exit
  return { code, out: command.out, err: command.err }
}

/** A server on a port of its own; resolves once it says that it is ready. */
export async function serving(args: string[], options?: ProcessOptions): Promise<CommandProcess & { url: string }> {
  const command = millrace(['serve', ...args, '--port', '0'], options)
  await command.until('Try it')
  return Object.assign(command, { url: /ready at (\S+)/u.exec(command.out)![1]! })
}
