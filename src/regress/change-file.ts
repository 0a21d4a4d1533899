/** Changes a file of test cases that several processes may write: whole or not at all, and only over the text that was read. */
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { MillraceError } from '../part/error.ts'

/** ms after which the lock of a process is one that a crash has left: nothing that holds it waits for anything. */
const staleAfter = 10_000

/**
 * `seen`: the text that the change was made from, undefined for a new file. Throws `tests-changed` if another one stands there now, or if another
 * process is changing it. `change` is called while no other process changes the file or its recordings; `write` replaces the text, or deletes the file.
 */
export function changeFile(
  path: string,
  seen: string | undefined,
  change: (write: (text: string | undefined) => void) => void,
): void {
  mkdirSync(dirname(path), { recursive: true })
  // A link stays one.
  const real = existsSync(path) ? realpathSync(path) : path
  const lock = join(dirname(real), `.${basename(real)}.lock`)
  take(lock, path)
  const next = `${lock}.new`
  try {
    if (textOf(real) !== seen) throw changed(`${path} has changed since it was read.`)
    change((text) => {
      if (text === undefined) return rmSync(path)
      const mode = seen === undefined ? undefined : statSync(real).mode
      writeFileSync(next, text, { flush: true, ...(mode !== undefined && { mode }) })
      renameSync(next, real)
    })
  } finally {
    rmSync(next, { force: true })
    rmSync(lock, { force: true })
  }
}

function take(lock: string, path: string): void {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const found = statSync(lock, { throwIfNoEntry: false })
    if (found !== undefined && Date.now() - found.mtimeMs < staleAfter) {
      throw changed(`Another process is changing ${path} now.`)
    }
    rmSync(lock, { force: true })
    take(lock, path)
  }
}

/** For a change that somebody made from what is no longer there. */
export function changed(what: string): MillraceError {
  return new MillraceError('tests-changed', `${what} Load the case again, then repeat what you did.`)
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
