/**
 * The process of a command: streams, environment, signals. `main.ts` makes it from the real one. Tests make their own: several commands
 * run side by side in one process, each with its own streams, folder and environment.
 */
import type { EventEmitter } from 'node:events'
import type { Readable, Writable } from 'node:stream'

export type Input = Readable & { isTTY?: boolean }

export type Output = Writable & { isTTY?: boolean; columns?: number; hasColors?(): boolean }

export interface CommandContext {
  stdin: Input
  stdout: Output
  stderr: Output
  /** `.env` files add to it. */
  env: Record<string, string | undefined>
  /** The absolute path of a path relative to the working folder. */
  path(name: string): string
  /** Emits signals, errors that nobody caught, and `exit`, as `process` does. */
  events: Pick<EventEmitter, 'on' | 'once' | 'off' | 'emit'>
  /** Ends the command at once. */
  exit(code: number): void
  /** The code with which it ends by itself. */
  exitCode?: number | string | null | undefined
  /** The process has nothing but this command: its `console` may be sent elsewhere, and V8 be set for it. */
  isAlone: boolean
}

/** Ends a command even if a tool has left something running, but only after its output is written. */
export async function leave(context: CommandContext, code: number): Promise<void> {
  await new Promise<void>((done) => context.stdout.write('', () => done()))
  context.exit(code)
}
