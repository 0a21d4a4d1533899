/** The contract of child processes, for the engine. `node-processes.ts` implements it on Node. */

export interface ProcessOptions {
  /** The program (a name on PATH or an absolute path) and its arguments. No shell reads them. */
  command: readonly [program: string, ...args: string[]]
  /** The folder in which it runs: `path`, which must lie in `root` when symlinks are followed. */
  cwd: { root: string; path: string }
  /** Names of environment variables that it gets in addition to {@link inherited}. */
  env: readonly string[]
  /** Written to its stdin, which is closed after it. */
  input: string
  /** Its place in a trace (W3C Trace Context): the variable `TRACEPARENT`. */
  traceparent?: string
  /** The run and the step it works for. */
  run: string
  step: string
  /** Keep its stdout, byte for byte, in a file of the data folder. */
  rawLog: boolean
  /** Receives its output in the order in which it comes. While the promise is pending, nothing more is read. Must not throw. */
  onOutput(stream: OutputStream, bytes: Uint8Array): Promise<void> | undefined
  /** Called when the raw log cannot be written. The process goes on. */
  onRawLogLost(why: string): void
}

export type OutputStream = 'stdout' | 'stderr'

/** `signal`: its name, if one ended the process. */
export interface ProcessExit {
  code: number | null
  signal: string | null
}

export interface RunningProcess {
  /** Resolves when the process and all processes that it has started are gone and its output was received. Never rejects. */
  readonly exit: Promise<ProcessExit>
  /** SIGTERM to the process and its children, and SIGKILL to those that live on. Its remaining output is discarded. */
  stop(): void
}

/** The child processes of one server or program. */
export interface Processes {
  /** Resolves when the program runs. Rejects with `not-installed`, `bad-cwd`, `missing-env` or `not-started`. */
  start(options: ProcessOptions): Promise<RunningProcess>
  /** Kills all that are left. Resolves when they are gone. */
  close(): Promise<void>
}
