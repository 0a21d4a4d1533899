/**
 * Sends `console` output of user code to stderr, on lines of its own: stdout is reserved for the answer, and on a terminal
 * a console line must not begin in the middle of it.
 */
import type { CommandContext } from '../context.ts'
import { Console } from 'node:console'
import { Writable } from 'node:stream'

const beforeLine = new Set<() => void>()

/** Calls `before` ahead of each line, so that an answer can end its own line. Returns a function that unsubscribes. */
export function onConsoleLine(before: () => void): () => void {
  beforeLine.add(before)
  return () => void beforeLine.delete(before)
}

/** For the rest of the process. The `console` object is patched in place, since code may hold a reference to it. */
export function sendConsoleToStderr(context: CommandContext): void {
  // In a process with other code, `console` is not ours to change.
  if (!context.isAlone) return
  const { stderr } = context
  const stream = new Writable({
    decodeStrings: false,
    write(text: string, _, done) {
      for (const before of beforeLine) before()
      stderr.write(text)
      done()
    },
  })
  const colorMode = stderr.isTTY && stderr.hasColors?.()
  const diverted = new Console({ stdout: stream, stderr: stream, colorMode }) as unknown as Record<string, unknown>
  for (const [name, method] of Object.entries(diverted)) {
    if (typeof method === 'function') Reflect.set(console, name, method)
  }
}
