/** `millrace`: what `bin/millrace.js` runs. It loads as little as the command line needs. */
import { version } from '../server/version.ts'

export async function main(argv: string[]): Promise<void> {
  // `millrace logs … | head` exits when head closes the pipe. `run` replaces this listener with its own.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  // A closed stderr must not crash the command.
  process.stderr.on('error', () => undefined)
  const [, , word, ...more] = argv
  // Scripts and editors ask often.
  if ((word === '--version' || word === '-V') && more.length === 0) process.stdout.write(`${version}\n`)
  else await (await import('./program.ts')).runProgram(argv)
}
