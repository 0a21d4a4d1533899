/** Reads a secret from the keyboard without showing it, or the first line of a pipe. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import type { CommandContext } from '../context.ts'

/** Undefined if there is none: Ctrl-C, Ctrl-D, the end of the input. */
export async function readSecret({ stdin, stderr }: CommandContext, question: string): Promise<string | undefined> {
  const isTerminal = stdin.isTTY === true
  if (isTerminal) stderr.write(question)
  // Readline would write every key that is typed.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: stdin, output, terminal: isTerminal })
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  lines.once('line', (line) => resolve(line.trim() || undefined))
  lines.once('SIGINT', () => resolve(undefined))
  lines.once('close', () => resolve(undefined))
  const secret = await promise
  lines.close()
  if (isTerminal) stderr.write('\n')
  return secret
}
