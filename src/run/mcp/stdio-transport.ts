/**
 * MCP over the stdin and stdout of a child process. Needs Node, so it is imported when a command is first started.
 *
 * Not the SDK's own transport: that one sees a death only once every holder of the pipes is gone, and ends the child but
 * not what the child has started (`npx` runs the server as a grandchild). Here a child leads a process group of its own,
 * its exit is the end of the connection, and the whole group is ended with it.
 */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/client'
import type { ChildProcess } from 'node:child_process'
import type { MillraceError } from '../../part/error.ts'
import { ownValue } from '../../part/own-value.ts'
import { createTextCleaner } from '../../part/redact.ts'
import { toLastWords } from './last-words.ts'
import { defaultReadLimits, lineTooLong, type ReadLimits } from '../outside/read-limits.ts'
import type { McpStdioServer } from './server.ts'

/** What a server is given of our environment unasked: where things are, nothing secret. */
const inherited = [
  'HOME',
  'LOGNAME',
  'PATH',
  'SHELL',
  'TERM',
  'USER',
  'APPDATA',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PROCESSOR_ARCHITECTURE',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'USERNAME',
  'USERPROFILE',
  'PROGRAMFILES',
]

/** ms from SIGTERM to SIGKILL. */
const termGrace = 2000
/** ms for the last words of a process that has ended, while something still holds its pipes. */
const pipeGrace = 200
/** ms for a process to end after it has let go of its stdin. */
const exitGrace = 1000

// With a group of its own a child does not hear Ctrl-C: if we end without closing, this is what ends it.
const living = new Set<ChildProcess>()
const endAll = () => living.forEach((child) => signalGroup(child, 'SIGKILL'))

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** Why the connection ended, once it has, unless it was closed from here. */
  fate: string | undefined
  /** What belongs to it and is for the log only: paths, names of variables, words of the system. */
  fateDetail: string | undefined
  /** The last that it wrote to stderr, once it has ended: for the log, for it was not written for a client. */
  lastWords: string | undefined

  /** Why the connection was closed from here because of what the server sent. */
  refusal: MillraceError | undefined

  readonly #server: McpStdioServer
  readonly #secrets: readonly string[]
  readonly #limits: ReadLimits
  readonly #who: string
  readonly #buffer: ReadBuffer
  #child: ChildProcess | undefined
  #stderr = ''
  #starting: Promise<void> | undefined
  #gone: Promise<void> | undefined
  #closing = false

  constructor(
    server: McpStdioServer,
    {
      who,
      secrets = [],
      limits = defaultReadLimits,
    }: { who: string; secrets?: readonly string[]; limits?: ReadLimits },
  ) {
    this.#server = server
    this.#secrets = secrets
    this.#limits = limits
    this.#who = who
    this.#buffer = new ReadBuffer({ maxBufferSize: limits.lineBytes })
  }

  async start(): Promise<void> {
    const { command, args = [], cwd, env } = this.#server
    const missing = missingEnv(env)
    if (missing.length > 0) {
      this.fate = 'its config names environment variables that are not set'
      this.fateDetail = `not set: ${missing.join(', ')}`
      throw new Error(this.fate)
    }
    // Not an import: a bundle for the edge must not hold one, though nothing there ever comes here.
    const { spawn } = process.getBuiltinModule('node:child_process')
    const child = spawn(command, [...args], {
      cwd,
      env: { ...defaultEnv(), ...pickEnv(env) },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
      windowsHide: true,
    })
    this.#child = child
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    // Secrets are taken out before anything is cut off: what a cut leaves of one would be found by nobody.
    const cleaner = createTextCleaner(this.#secrets)
    const keep = (text: string) => (this.#stderr = (this.#stderr + text).slice(-1000))
    child.stderr.setEncoding('utf8').on('data', (text: string) => keep(cleaner.push(text)))
    child.once('close', () => keep(cleaner.end()))
    // A broken pipe is told by the exit, or by the write that met it.
    for (const stream of child.stdio) stream?.on('error', (error) => this.onerror?.(error))
    this.#starting = new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (error) => {
        this.fate = spawnFault(error, cwd)
        this.fateDetail = (error as NodeJS.ErrnoException).code
        reject(error)
      })
    })
    await this.#starting
    if (living.size === 0) process.on('exit', endAll)
    living.add(child)
    this.#gone = this.#end(child)
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      const stdin = this.#child?.stdin
      if (!stdin) throw new Error('the server has not been started')
      stdin.write(serializeMessage(message), (error) => {
        if (!error) resolve()
        else void this.#untilGone().then(() => reject(error))
      })
    })
  }

  /** A pipe breaks because the process is ending, and how it ended says more; or else because nobody reads any more. */
  async #untilGone(): Promise<void> {
    const timer = setTimeout(() => {
      this.fate ??= 'it no longer reads what it is sent'
      void this.close()
    }, exitGrace)
    await this.#gone
    clearTimeout(timer)
  }

  /** Resolves when the server has ended and what it started has been killed. Never rejects. */
  async close(): Promise<void> {
    this.#closing = true
    await this.#starting?.catch(() => undefined)
    const child = this.#child
    if (child && living.has(child)) {
      child.stdin?.end()
      signalGroup(child, 'SIGTERM')
      const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), termGrace)
      await this.#gone
      clearTimeout(timer)
    }
    await this.#gone
  }

  #read(chunk: Buffer): void {
    try {
      this.#buffer.append(chunk)
    } catch {
      this.refusal ??= lineTooLong(this.#who, this.#limits)
      this.fate ??= this.refusal.message
      this.#child?.stdout?.destroy()
      void this.close()
      return
    }
    // A line that is no message (a stray print) is passed over; what follows is read.
    for (;;) {
      try {
        const message = this.#buffer.readMessage()
        if (message === null) return
        this.onmessage?.(message)
      } catch (error) {
        this.onerror?.(error as Error)
      }
    }
  }

  async #end(child: ChildProcess): Promise<void> {
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
      child.once('exit', (...how) => resolve(how))
    })
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pipeGrace)
      child.once('close', () => {
        clearTimeout(timer)
        resolve()
      })
    })
    signalGroup(child, 'SIGKILL')
    living.delete(child)
    if (living.size === 0) process.off('exit', endAll)
    for (const stream of child.stdio) stream?.destroy()
    if (!this.#closing) this.fate = signal ? `it was ended by ${signal}` : `it exited with code ${code}`
    this.lastWords = toLastWords(this.#stderr)
    this.onclose?.()
  }
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(process.platform === 'win32' ? pid : -pid, signal)
  } catch (error) {
    // Nobody left to hear it. macOS says EPERM of a group in which only the unreaped are left.
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

function defaultEnv(): Record<string, string> {
  return Object.fromEntries(
    inherited.flatMap((name) => {
      const value = ownValue(process.env, name)
      // A value that begins so is a shell's function, not a text.
      return value === undefined || value.startsWith('()') ? [] : [[name, value]]
    }),
  )
}

function pickEnv(env: McpStdioServer['env'] = []): Record<string, string> {
  if (!isNames(env)) return env
  return Object.fromEntries(env.map((name) => [name, ownValue(process.env, name)!]))
}

function missingEnv(env: McpStdioServer['env'] = []): string[] {
  return isNames(env) ? env.filter((name) => ownValue(process.env, name) === undefined) : []
}

function isNames(env: NonNullable<McpStdioServer['env']>): env is readonly string[] {
  return Array.isArray(env)
}

function spawnFault(error: Error, cwd: string | undefined): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT')
    return cwd === undefined ? 'there is no such command' : 'there is no such command, or no such folder'
  if (code === 'EACCES') return 'the command may not be run'
  return 'it cannot be started'
}
