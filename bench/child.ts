/** The benchmark's child processes: each pinned to a core, called over IPC, and killed with the benchmark. */
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { Reply } from './calls.ts'

export interface Child {
  pid: number
  /** The URL after `ready at`; empty without `awaitReady`. */
  url: string
  /** ms from its start to `ready at`. */
  bootMs: number
  /** Rejects with the command's error, after `ms`, or when the process exits. */
  call<T>(command: string, args?: unknown, ms?: number): Promise<T>
  stop(): Promise<void>
}

export interface ChildOptions {
  /** Node's arguments: options, the file, and its arguments. */
  args: readonly string[]
  /** One of {@link core}. */
  core: number | undefined
  env?: NodeJS.ProcessEnv
  /** Wait for its line `ready at <url>`. */
  awaitReady: boolean
  /** Whether it answers calls. */
  channel: boolean
  /** A command, with its arguments, that runs the process. */
  under?: readonly string[]
}

/** The cores that this process may use. In a container, these may not be the first ones. */
const cores = coresOf(spawnSync('taskset', ['-cp', String(process.pid)], { encoding: 'utf8' }).stdout ?? '')
export const pinned = cores.length > 1
/** Separate cores for server, load and model server. With two cores, load and model server share one. */
export const core = { server: cores[0], load: cores[1], upstream: cores[2] ?? cores[1] }

function coresOf(affinity: string): number[] {
  const list = /: ([\d,-]+)\s*$/u.exec(affinity)?.[1]?.split(',') ?? []
  return list.flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number)
    return Array.from({ length: last! - first! + 1 }, (_, i) => first! + i)
  })
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

const bootDeadline = 30_000

export async function startChild(options: ChildOptions): Promise<Child> {
  const { env = process.env, awaitReady, channel } = options
  const command = commandOf(options)
  const began = performance.now()
  const child = spawn(command[0]!, command.slice(1), {
    env,
    stdio: ['ignore', 'pipe', 'pipe', ...(channel ? (['ipc'] as const) : [])],
  })
  running.add(child)
  const gone = once(child, 'exit').catch(() => undefined)
  let stderr = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-4000)))
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  const ended = gone.then(() => {
    running.delete(child)
    const error = new Error(`the process exited: ${stderr.trim() || 'nothing on stderr'}`)
    for (const { reject } of waiting.values()) reject(error)
    return error
  })
  child.on('message', (message) => {
    const { id, result, error } = message as Reply
    if (error === undefined) waiting.get(id)?.resolve(result)
    else waiting.get(id)?.reject(new Error(error))
  })

  async function call<T>(name: string, given: unknown = {}, ms = 30_000): Promise<T> {
    const id = nextId++
    const answer = Promise.withResolvers<unknown>()
    waiting.set(id, answer)
    const timer = setTimeout(() => answer.reject(new Error(`${name} took more than ${ms / 1000} s`)), ms)
    child.send({ id, command: name, args: given }, (error) => error && answer.reject(error))
    try {
      return (await answer.promise) as T
    } finally {
      clearTimeout(timer)
      waiting.delete(id)
    }
  }

  async function stop(): Promise<void> {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
    await gone
    clearTimeout(timer)
  }

  let nextId = 1
  const url = awaitReady ? await Promise.race([readyAt(child), ended, late()]) : ''
  if (typeof url !== 'string') {
    await stop()
    throw url ?? new Error(`it was not ready within ${bootDeadline / 1000} s: ${stderr}`)
  }
  // Discard further output.
  child.stdout!.resume()
  return { pid: child.pid!, url, bootMs: performance.now() - began, call, stop }
}

function commandOf({ args, core: at, under = [] }: Pick<ChildOptions, 'args' | 'core' | 'under'>): string[] {
  return [...(pinned && at !== undefined ? ['taskset', '-c', String(at)] : []), ...under, process.execPath, ...args]
}

/** ms from the start of a process to its end. */
export async function timeChild({ env, ...options }: Pick<ChildOptions, 'args' | 'core' | 'env'>): Promise<number> {
  const [file, ...args] = commandOf(options)
  const began = performance.now()
  await promisify(execFile)(file!, args, { env })
  return performance.now() - began
}

async function readyAt(child: ChildProcess): Promise<string | undefined> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const url = /ready at (http\S+)/u.exec(line)?.[1]
    if (url !== undefined) return url
  }
  return undefined
}

/** The model server, `upstream.ts`. */
export function startUpstream(): Promise<Child> {
  const args = [join(import.meta.dirname, 'upstream.ts')]
  return startChild({ args, core: core.upstream, awaitReady: true, channel: true })
}

/** The clients, `load.ts`. */
export function startLoad(): Promise<Child> {
  const args = [join(import.meta.dirname, 'load.ts')]
  return startChild({ args, core: core.load, awaitReady: false, channel: true })
}

/** Measures the speed of the server's core, `spin.ts`. */
export function startSpinner(): Promise<Child> {
  const args = [join(import.meta.dirname, 'spin.ts')]
  return startChild({ args, core: core.server, awaitReady: false, channel: true })
}

function late(): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, bootDeadline, undefined).unref())
}
