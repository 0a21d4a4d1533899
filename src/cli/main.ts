/** The entry of `bin/millrace.js`. It loads as little as the command line needs. */
import { version } from '../server/version.ts'
import type { CommandContext } from './context.ts'

export async function main(argv: string[]): Promise<void> {
  // `millrace logs … | head` exits when head closes the pipe. `run` replaces this listener with its own.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  // A closed stderr must not crash the command.
  process.stderr.on('error', () => undefined)
  const [, , word, ...more] = argv
  // Scripts and editors ask often.
  if ((word === '--version' || word === '-V') && more.length === 0) process.stdout.write(`${version}\n`)
  else await (await import('./program.ts')).runProgram(ofProcess(), argv.slice(2))
}

function ofProcess(): CommandContext {
  const { resolve } = process.getBuiltinModule('node:path')
  return {
    // Looking at it opens it.
    get stdin() {
      return process.stdin
    },
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    path: (name) => resolve(name),
    events: process,
    exit: (code) => process.exit(code),
    get exitCode() {
      return process.exitCode
    },
    set exitCode(code) {
      process.exitCode = code
    },
    isAlone: true,
  }
}
