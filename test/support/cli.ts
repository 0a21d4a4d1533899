/** The built command as a user's shell runs it: a real process, its output as it comes, its exit code. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { onTestFinished } from 'vitest'
import { runWarm } from './warm-command.ts'

const bin = resolve('bin/millrace.js')

export interface Command {
  pid: number
  readonly out: string
  readonly err: string
  /** Resolves when stdout and stderr together hold the text; throws when the process ends first. */
  until(text: string): Promise<void>
  kill(signal: NodeJS.Signals): void
  /** Writes to its stdin, which must be open. */
  send(text: string): void
  /** Closes its stdin. */
  finish(): void
  /** Closes our end of its stdout, as `| head` does. */
  hangUp(): void
  /** Its exit code (128 + n after signal n), once its output is complete. */
  exit: Promise<number>
}

export interface CommandOptions {
  cwd?: string
  env?: Record<string, string>
  /** Text on stdin; without it stdin is empty. `open`: it comes later. */
  input?: string
  open?: boolean
  /** Flags for Node itself. */
  node?: string[]
  /** Another Node than the one that runs the tests. */
  execPath?: string
}

const signals: Partial<Record<NodeJS.Signals, number>> = { SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }

/** Nothing of the machine's own keys and endpoints. */
function environment(env: Record<string, string> = {}): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => ['PATH', 'HOME', 'TMPDIR'].includes(name))
  return { ...Object.fromEntries(own), MILLRACE_DEMO_DELAY_MS: '0', NO_COLOR: '1', ...env } as Record<string, string>
}

/** Starts `millrace …`; the test's end kills it. */
export function millrace(args: string[], options: CommandOptions = {}): Command {
  const { cwd, env = {}, input = '', open = false, node = [], execPath = process.execPath } = options
  if (!existsSync('dist/cli/main.js')) throw new Error('dist is missing: npm run build comes before these tests')
  const child = spawn(execPath, [...node, bin, ...args], { cwd, env: environment(env) })
  const state = { out: '', err: '', ended: false }
  let watchers: (() => void)[] = []
  const changed = () => {
    const woken = watchers
    watchers = []
    for (const wake of woken) wake()
  }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    state.out += text
    changed()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    state.err += text
    changed()
  })
  child.stdin.on('error', () => undefined)
  if (!open) child.stdin.end(input)
  const exit = new Promise<number>((done) => {
    child.on('close', (code, signal) => {
      state.ended = true
      changed()
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
      return state.out
    },
    get err() {
      return state.err
    },
    async until(text) {
      while (!(state.out + state.err).includes(text)) {
        if (state.ended) throw new Error(`ended without ${JSON.stringify(text)}: ${state.out}${state.err}`)
        await new Promise<void>((wake) => watchers.push(wake))
      }
    },
    send: (text) => void child.stdin.write(text),
    finish: () => void child.stdin.end(),
    kill: (signal) => void child.kill(signal),
    hangUp: () => void child.stdout.destroy(),
    exit,
  }
}

/**
 * Runs a command to its end. Most do in one process that stays: see `warm-command.ts`. `alone`: in a process of its own; `warm`: the first
 * of its name, too, in that which stays.
 */
export async function ran(args: string[], options: CommandOptions & { alone?: boolean; warm?: boolean } = {}) {
  const { cwd = process.cwd(), env, input = '', alone = false, warm: isFirstWarm, open, node, execPath } = options
  if (!alone && open === undefined && node === undefined && execPath === undefined) {
    const warm = await runWarm({ args, cwd: resolve(cwd), env: environment(env), input }, isFirstWarm)
    if (warm !== undefined) return warm
  }
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
