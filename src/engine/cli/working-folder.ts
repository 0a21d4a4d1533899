/** The working folder of a CLI agent: a folder that the agent file names, or one below it that the request chooses. */
import { splitReferences } from '../../pipeline/reference.ts'
import type { ProcessOptions } from '../../processes/processes.ts'

export interface WorkingFolder {
  folder: ProcessOptions['cwd']
  /** The request determines part of it, so a wrong folder is the client's mistake. */
  isRequested: boolean
}

/**
 * `root` is the path up to the first reference other than `$env`, without an unfinished last name: for `./work/p-$input.name` it is `./work`. The
 * code that starts the process checks that `path` stays inside `root`.
 */
export function workingFolder(cwd: string, at: <T>(value: T) => T): WorkingFolder {
  const pieces = splitReferences(cwd)
  const first = pieces.findIndex((piece) => typeof piece !== 'string' && piece.path[0] !== 'env')
  const path = String(at(cwd))
  if (first < 0) return { folder: { root: path, path }, isRequested: false }
  const fixed = pieces.slice(0, first).map((piece) => (typeof piece === 'string' ? piece : String(at(piece.text))))
  const root = /^(.*[/\\])/su.exec(fixed.join(''))?.[1] ?? '.'
  const isRequested = pieces.some(
    (piece) => typeof piece !== 'string' && (piece.path[0] === 'input' || piece.path[0] === 'user'),
  )
  return { folder: { root, path }, isRequested }
}
