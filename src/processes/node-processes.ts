/** Child processes on Node. Its modules are looked up when a process starts: bundles for edge runtimes must not import them. */
import { compact } from '../part/compact.ts'
import type { ChildProcess } from 'node:child_process'
import { MillraceError, messageOf } from '../part/error.ts'
import { watchChild, type Child } from './child.ts'
import { childEnv, type Environment } from './child-env.ts'
import { markName, signalGroup, startOf } from './process-table.ts'
import { keepRecord } from './process-records.ts'
import type { ProcessExit, ProcessOptions, Processes } from './processes.ts'
import { openRawLog, type RawLog } from './raw-log.ts'

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
    const env = { ...childEnv(options.env, environment), ...compact({ TRACEPARENT }), [markName]: mark }
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
        const kept = stream === 'stdout' ? raw?.write(bytes) : undefined
        const taken = options.onOutput(stream, bytes)
        return kept === undefined || taken === undefined
          ? (kept ?? taken)
          : Promise.all([kept, taken]).then(() => undefined)
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
  // Before the file system is asked: a request must not learn what exists outside.
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
    return new MillraceError('not-installed', `The program "${name}" was not found.`, compact({ detail: where }))
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
