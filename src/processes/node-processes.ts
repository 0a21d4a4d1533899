/** Child processes on Node. Its modules are looked up when a process starts: bundles for edge runtimes must not import them. */
import { omitUndefined } from '../part/omit-undefined.ts'
import type { ChildProcess } from 'node:child_process'
import { MillraceError, messageOf } from '../part/error.ts'
import { markName, signalGroup, startOf, killMarked, keepRecord } from './process-table.ts'
import type { ProcessExit, ProcessOptions, Processes, OutputStream } from './processes.ts'
import { fileNameOf } from '../part/file-name.ts'
import { ownValue } from '../part/own-value.ts'

export interface NodeProcessesOptions {
  /** From which the variables of a child are taken. */
  environment: Environment
  /** The data folder. Without one there are no raw logs, and nothing is left of a crash to find its processes by. */
  data?: string | undefined
  /** Folder that those of the children are relative to. Default: that of this process. */
  cwd?: string
}

export function createNodeProcesses({ environment, data, cwd: base = '' }: NodeProcessesOptions): Processes {
  const living = new Map<ChildProcess, Child>()
  const starting = new Set<Promise<unknown>>()
  let isClosed = false
  // A process in a group of its own gets no Ctrl-C, so it is killed here if this process exits without closing.
  const killAll = () => {
    for (const { pid } of living.keys()) signalGroup(pid!, 'SIGKILL')
  }

  async function start(options: ProcessOptions) {
    const { command, input, run, step } = options
    const { spawn } = process.getBuiltinModule('node:child_process')
    const [program, ...args] = command
    const mark = crypto.randomUUID()
    const { traceparent: TRACEPARENT } = options
    const env = { ...childEnv(options.env, environment), ...omitUndefined({ TRACEPARENT }), [markName]: mark }
    const cwd = await folderOf(options.cwd, base)
    if (options.rawLog && data === undefined) throw noFolder()
    const raw = options.rawLog ? await rawLogOf(options, data!) : undefined
    if (isClosed) throw new MillraceError('closing', 'The server is shutting down.')
    let child: ChildProcess
    try {
      child = spawn(program, args, {
        cwd,
        env,
        stdio: 'pipe',
        detached: process.platform !== 'win32',
        windowsHide: true,
      })
      await new Promise<void>((resolve, reject) => child.once('spawn', resolve).once('error', reject))
    } catch (error) {
      await raw?.close()
      throw notStarted(program, error)
    }
    child.on('error', () => undefined)
    if (living.size === 0) process.on('exit', killAll)
    let forget: (() => Promise<void>) | undefined
    const watched = watchChild({
      child,
      mark,
      onOutput(stream, bytes) {
        const rawWrite = stream === 'stdout' ? raw?.write(bytes) : undefined
        const taken = options.onOutput(stream, bytes)
        return rawWrite === undefined || taken === undefined
          ? (rawWrite ?? taken)
          : Promise.all([rawWrite, taken]).then(() => undefined)
      },
      async onGone() {
        living.delete(child)
        if (living.size === 0) process.off('exit', killAll)
        await Promise.allSettled([raw?.close(), forget?.()])
      },
    })
    living.set(child, watched)
    if (data !== undefined) {
      try {
        forget = await keepRecord(data, { pid: child.pid!, start: await startOf(child.pid!), mark, run, step })
      } catch (error) {
        watched.kill()
        const what = 'The data folder cannot be written, so that its processes could not be found after a crash.'
        throw new MillraceError('not-started', what, { cause: error, detail: `${data}: ${messageOf(error)}` })
      }
    }
    // Only now: a process without a record must have nothing to work on.
    child.stdin!.end(input)
    return watched
  }

  return {
    start(options) {
      const started = start(options)
      starting.add(started)
      const done = () => starting.delete(started)
      started.then(done, done)
      return started
    },
    async close() {
      isClosed = true
      await Promise.allSettled(starting)
      const exits: Promise<ProcessExit>[] = []
      for (const child of living.values()) {
        child.kill()
        exits.push(child.exit)
      }
      await Promise.all(exits)
    },
  }
}

/** The real path of a folder, which must lie in the real root. */
async function folderOf({ root, path }: ProcessOptions['cwd'], base: string): Promise<string> {
  const { realpath, stat } = process.getBuiltinModule('node:fs/promises')
  const { relative, isAbsolute, resolve, sep } = process.getBuiltinModule('node:path')
  const isInside = (top: string, place: string) => {
    const rest = relative(top, place)
    return rest !== '..' && !rest.startsWith(`..${sep}`) && !isAbsolute(rest)
  }
  // Before the file system is asked: a request must not learn about files outside.
  if (!isInside(resolve(base, root), resolve(base, path))) throw leadsOut()
  let real: string
  let top: string
  try {
    top = await realpath(resolve(base, root))
    real = await realpath(resolve(base, path))
    if (!(await stat(real)).isDirectory()) throw new Error('not a folder')
  } catch {
    const message = '"cwd" is not a folder of this machine.'
    throw new MillraceError('bad-cwd', message, { detail: `cwd: ${resolve(base, path)}` })
  }
  if (!isInside(top, real)) throw leadsOut()
  return real
}

function leadsOut(): MillraceError {
  return new MillraceError('bad-cwd', '"cwd" leads out of the folder that the agent file names.')
}

/** Clients learn the name of the program, not where it is. */
function notStarted(program: string, error: unknown): MillraceError {
  const { code } = error as NodeJS.ErrnoException
  const { basename } = process.getBuiltinModule('node:path')
  const name = basename(program)
  const where = name === program ? undefined : program
  if (code === 'ENOENT') {
    return new MillraceError('not-installed', `The program "${name}" was not found.`, omitUndefined({ detail: where }))
  }
  const why = reasons.get(code ?? '')
  const detail = [where, ...(why === undefined ? [messageOf(error)] : [])]
    .filter((each) => each !== undefined)
    .join(': ')
  const message = `The program "${name}" could not be started${why === undefined ? '' : `: ${why}`}.`
  return new MillraceError('not-started', message, { cause: error, ...(detail !== '' && { detail }) })
}

const reasons: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'it is not executable'],
  ['E2BIG', 'its arguments are too long'],
  ['EAGAIN', 'the system has no room for another process'],
  ['ENOMEM', 'the system has no memory for another process'],
])

async function rawLogOf({ run, step, onRawLogLost: onLost }: ProcessOptions, data: string): Promise<RawLog> {
  try {
    return await openRawLog(data, { run, step, onLost })
  } catch (cause) {
    throw new MillraceError('not-started', 'The raw log cannot be written.', { cause, detail: messageOf(cause) })
  }
}

function noFolder(): MillraceError {
  const cure = 'Remove "rawLog", or serve with a data folder.'
  return new MillraceError('bad-config', `"rawLog" writes to the data folder, and this program has none. ${cure}`)
}

/** The stdout of a process as a file, byte for byte: `<data>/runs/<run>.<step>.raw`. A second attempt of a step is appended. */
interface RawLog {
  /** The promise settles when more may be written. */
  write(bytes: Uint8Array): Promise<void> | undefined
  close(): Promise<void>
}

/** `onLost` is called once, when it cannot be written any more. */
export async function openRawLog(
  data: string,
  { run, step, onLost }: { run: string; step: string; onLost(why: string): void },
): Promise<RawLog> {
  const { mkdir, open } = process.getBuiltinModule('node:fs/promises')
  const { join } = process.getBuiltinModule('node:path')
  const folder = join(data, 'runs')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // Ids may come from a program or another machine.
  const file = await open(join(folder, `${fileNameOf(run)}.${fileNameOf(step)}.raw`), 'a', 0o600)
  let last = Promise.resolve()
  let waiting = 0
  let isLost = false

  async function append(bytes: Uint8Array): Promise<void> {
    try {
      if (!isLost) await file.appendFile(bytes)
    } catch (error) {
      isLost = true
      onLost(messageOf(error))
    }
    waiting -= bytes.length
  }

  return {
    write(bytes) {
      waiting += bytes.length
      last = last.then(() => append(bytes))
      return waiting > mostWaiting ? last : undefined
    },
    async close() {
      await last
      await file.close()
    },
  }
}

/** Bytes that may wait to be written before the process is no longer read. */
const mostWaiting = 1_000_000

/* One child process: its pipes, its process group, and its end. */

/** ms from SIGTERM to SIGKILL. */
const termGrace = 2000
/** ms without output after which the pipes of an exited process are given up: another process holds them. */
const pipeGrace = 200

interface Child {
  readonly exit: Promise<ProcessExit>
  stop(): void
  kill(): void
}

interface ChildOptions {
  child: ChildProcess
  mark: string
  onOutput(stream: OutputStream, bytes: Uint8Array): Promise<void> | undefined
  /** Called before `exit` resolves. Must not reject. */
  onGone(): Promise<void>
}

/** Takes over a process that runs. */
function watchChild({ child, mark, onOutput, onGone }: ChildOptions): Child {
  const pid = child.pid!
  const streams = [child.stdout!, child.stderr!]
  const { promise: exit, resolve } = Promise.withResolvers<ProcessExit>()
  let how: ProcessExit | undefined
  let stopping = false
  let held = false
  let lastOutput = 0
  let killTimer: ReturnType<typeof setTimeout> | undefined
  let pipeTimer: ReturnType<typeof setTimeout> | undefined

  function take(stream: OutputStream, bytes: Uint8Array): void {
    lastOutput = performance.now()
    if (stopping) return
    const behind = onOutput(stream, bytes)
    if (behind === undefined || held) return
    held = true
    for (const each of streams) each.pause()
    void behind.then(go, go)
  }

  function go(): void {
    held = false
    lastOutput = performance.now()
    for (const each of streams) each.resume()
  }

  // Killing comes first: a process that holds the pipes would keep them open.
  async function end(): Promise<void> {
    clearTimeout(killTimer)
    clearInterval(pipeTimer)
    signalGroup(pid, 'SIGKILL')
    await killMarked(mark)
    for (const each of child.stdio) each?.destroy()
    await onGone()
    resolve(how!)
  }

  child.stdout!.on('data', (bytes: Buffer) => take('stdout', bytes))
  child.stderr!.on('data', (bytes: Buffer) => take('stderr', bytes))
  // A broken pipe means that the process ends, or that it does not read its input. Its exit says more.
  for (const each of child.stdio) each?.on('error', () => undefined)
  let ended = false
  const endOnce = () => {
    if (ended) return
    ended = true
    void end()
  }
  child.once('exit', (code, signal) => {
    how = { code, signal }
    lastOutput = performance.now()
    pipeTimer = setInterval(() => {
      if (!held && performance.now() - lastOutput >= pipeGrace) endOnce()
    }, pipeGrace / 4)
  })
  child.once('close', endOnce)

  return {
    exit,
    stop() {
      if (stopping) return
      stopping = true
      if (held) go()
      if (how !== undefined) return
      signalGroup(pid, 'SIGTERM')
      killTimer = setTimeout(() => signalGroup(pid, 'SIGKILL'), termGrace)
    },
    kill() {
      stopping = true
      if (held) go()
      if (how === undefined) signalGroup(pid, 'SIGKILL')
    },
  }
}

/* The environment of a child process: what every program needs to run, and the variables that the agent names. */

/** Variables that every child process inherits: places, language and time zone, no secrets. docs/cli-agents.md lists them. */
export const inherited = [
  'PATH',
  'HOME',
  'LOGNAME',
  'USER',
  'SHELL',
  'TERM',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'TMPDIR',
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERNAME',
  'USERPROFILE',
] as const

type Environment = Readonly<Record<string, string | undefined>>

/** `names`: those that the agent allows; one that ends in `?` may be unset. Throws `missing-env`. */
function childEnv(names: readonly string[], environment: Environment): Record<string, string> {
  const env = new Map<string, string>()
  const missing: string[] = []
  for (const name of inherited) {
    const value = ownValue(environment, name)
    // Such a value is an exported shell function.
    if (value !== undefined && !value.startsWith('()')) env.set(name, value)
  }
  for (const written of names) {
    const name = written.replace(/\?$/u, '')
    const value = ownValue(environment, name)
    if (value !== undefined) env.set(name, value)
    else if (name === written) missing.push(name)
  }
  if (missing.length === 0) return Object.fromEntries(env)
  const list = missing.join(', ')
  const cure = `Set it for the server, or write "${missing[0]}?" in "env" if it may be unset.`
  throw new MillraceError('missing-env', `The environment variable ${list} is not set. ${cure}`)
}
