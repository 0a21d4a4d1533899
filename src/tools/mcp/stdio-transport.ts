/**
 * MCP over the stdin and stdout of a child process. Needs Node, so it is imported when a command is first started.
 *
 * We do not use the SDK's transport: it notices an exit only when all holders of the pipes are gone, and it kills the child
 * but not its children (`npx` runs the server as a grandchild). Here each child leads its own process group, its exit ends
 * the connection, and the whole group is killed with it.
 */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { serializeMessage } from '@modelcontextprotocol/client'
import type { ChildProcess } from 'node:child_process'
import type { MillraceError } from '../../part/error.ts'
import { createTextCleaner } from '../../fold/redact.ts'
import { childEnv, missingEnv } from './child-env.ts'
import { createMessageLines, type MessageLines } from './message-lines.ts'
import { stderrTail } from './stderr-tail.ts'
import { defaultReadLimits, lineTooLong, type ReadLimits } from '../../models/limits/read-limits.ts'
import type { McpStdioServer } from './server.ts'

/** ms from SIGTERM to SIGKILL. */
const termGrace = 2000
/** ms to wait for the remaining stderr of an exited process while another process holds its pipes. */
const pipeGrace = 200
/** ms for a process to exit after it has closed its stdin. */
const exitGrace = 1000

// A child in its own process group gets no Ctrl-C, so children are killed here if this process exits without closing them.
const living = new Set<ChildProcess>()
const endAll = () => living.forEach((child) => signalGroup(child, 'SIGKILL'))

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** Why the connection ended; undefined while it is open and if we closed it. */
  failure: string | undefined
  /** Details of `fate` for the log only: paths, variable names, system messages. */
  fateDetail: string | undefined
  /** The end of its stderr, set after it has exited. For the log only. */
  lastWords: string | undefined

  /** Set if we closed the connection because of a message of the server. */
  refusal: MillraceError | undefined
  /** The program ended by itself. */
  exited = false

  private readonly server: McpStdioServer
  private readonly secrets: readonly string[]
  private readonly limits: ReadLimits
  private readonly who: string
  private readonly lines: MessageLines
  private child: ChildProcess | undefined
  private said = ''
  private starting: Promise<void> | undefined
  private gone: Promise<void> | undefined
  private closing = false

  constructor(
    server: McpStdioServer,
    {
      who,
      secrets = [],
      limits = defaultReadLimits,
    }: { who: string; secrets?: readonly string[]; limits?: ReadLimits },
  ) {
    this.server = server
    this.secrets = secrets
    this.limits = limits
    this.who = who
    this.lines = createMessageLines(limits.lineBytes)
  }

  /** The SDK takes a transport with these two for one to a program: there no answer to `server/discover` means an older version. */
  get pid(): number | undefined {
    return this.child?.pid
  }

  readonly stderr = undefined

  async start(): Promise<void> {
    const { command, args = [], cwd, env } = this.server
    const missing = missingEnv(env)
    if (missing.length > 0) {
      this.failure = 'environment variables named in its config are not set'
      this.fateDetail = `not set: ${missing.join(', ')}`
      throw new Error(this.failure)
    }
    // Not an import: bundles for edge runtimes must not contain one, even if they never run this code.
    const { spawn } = process.getBuiltinModule('node:child_process')
    const child = spawn(command, [...args], {
      cwd,
      env: childEnv(env),
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
      windowsHide: true,
    })
    this.child = child
    child.stdout.on('data', (chunk: Buffer) => this.read(chunk))
    // Remove secrets before cutting the text: the rest of a cut secret would not be found.
    const cleaner = createTextCleaner(this.secrets)
    const keep = (text: string) => (this.said = (this.said + text).slice(-1000))
    child.stderr.setEncoding('utf8').on('data', (text: string) => keep(cleaner.push(text)))
    child.once('close', () => keep(cleaner.end()))
    // A broken pipe is reported by the exit, or by the failed write.
    for (const stream of child.stdio) stream?.on('error', (error) => this.onerror?.(error))
    this.starting = new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (error) => {
        this.failure = spawnFault(error, cwd)
        this.fateDetail = (error as NodeJS.ErrnoException).code
        reject(error)
      })
    })
    await this.starting
    if (living.size === 0) process.on('exit', endAll)
    living.add(child)
    this.gone = this.end(child)
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      const stdin = this.child?.stdin
      if (!stdin) throw new Error('the server has not been started')
      stdin.write(serializeMessage(message), (error) => {
        if (!error) resolve()
        else void this.untilGone().then(() => reject(error))
      })
    })
  }

  /** A pipe breaks if the process is exiting, and then its exit status says more, or if the process has closed its stdin. */
  private async untilGone(): Promise<void> {
    const timer = setTimeout(() => {
      this.failure ??= 'it has closed its stdin'
      void this.close()
    }, exitGrace)
    await this.gone
    clearTimeout(timer)
  }

  /** Resolves when the server has exited and its child processes are killed. Never rejects. */
  async close(): Promise<void> {
    this.closing = true
    await this.starting?.catch(() => undefined)
    const child = this.child
    if (child && living.has(child)) {
      child.stdin?.end()
      signalGroup(child, 'SIGTERM')
      const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), termGrace)
      await this.gone
      clearTimeout(timer)
    }
    await this.gone
  }

  private read(chunk: Buffer): void {
    const messages = this.lines.read(chunk)
    for (const message of messages ?? []) {
      try {
        this.onmessage?.(message)
      } catch (error) {
        this.onerror?.(error as Error)
      }
    }
    if (messages !== undefined) return
    this.refusal ??= lineTooLong(this.who, this.limits)
    this.failure ??= this.refusal.message
    this.child?.stdout?.destroy()
    void this.close()
  }

  private async end(child: ChildProcess): Promise<void> {
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
    this.exited = !this.closing
    if (!this.closing) this.failure = signal ? `it was killed by ${signal}` : `it exited with code ${code}`
    const words = stderrTail(this.said)
    this.lastWords = words === undefined ? undefined : `its stderr: ${words}`
    this.onclose?.()
  }
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(process.platform === 'win32' ? pid : -pid, signal)
  } catch (error) {
    // The group is gone. macOS reports EPERM for a group that has only unreaped processes left.
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

function spawnFault(error: Error, cwd: string | undefined): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return cwd === undefined ? 'its command was not found' : 'its command or its cwd was not found'
  if (code === 'EACCES') return 'its command is not executable'
  return 'its command could not be started'
}
