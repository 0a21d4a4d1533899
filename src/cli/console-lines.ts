/**
 * What the code of agents prints with `console`: it goes to stderr, on lines of its own. Stdout belongs to the answer, which a
 * program may read, and on a terminal a line must not begin in the middle of it.
 */
import { Console } from 'node:console'
import { Writable } from 'node:stream'

const beforeLine = new Set<() => void>()

/** Calls back before a line is printed, so that an answer can end its own. Gives back how to stop. */
export function onConsoleLine(before: () => void): () => void {
  beforeLine.add(before)
  return () => void beforeLine.delete(before)
}

/** For the rest of the process. `console` stays the same object: code may have taken it along. */
export function sendConsoleToStderr(): void {
  const { stderr } = process
  const stream = new Writable({
    decodeStrings: false,
    write(text: string, _, done) {
      for (const before of beforeLine) before()
      stderr.write(text)
      done()
    },
  })
  const colorMode = stderr.isTTY && stderr.hasColors()
  const diverted = new Console({ stdout: stream, stderr: stream, colorMode }) as unknown as Record<string, unknown>
  for (const [name, method] of Object.entries(diverted)) {
    if (typeof method === 'function') Reflect.set(console, name, method)
  }
}
