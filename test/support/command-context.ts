/** What a command has in the place of a process: its own streams, folder, environment and signals. */
import { EventEmitter } from 'node:events'
import { resolve } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import type { CommandContext } from '../../src/cli/context.ts'

export function createContext(given: Partial<CommandContext> & { cwd?: string } = {}): CommandContext {
  const { cwd = '.', ...rest } = given
  return {
    stdin: new PassThrough().end(),
    stdout: new Writable({ write: (_, __, done) => done() }),
    stderr: new Writable({ write: (_, __, done) => done() }),
    env: {},
    path: (name) => resolve(cwd, name),
    events: new EventEmitter(),
    exit: () => undefined,
    isAlone: false,
    ...rest,
  }
}
