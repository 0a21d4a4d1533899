/** A copy of the work tree in a temporary folder: mutants are put into it, so that the checkout is never touched. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export interface WorkCopy {
  folder: string
  /** Temporary files of the tests. */
  temporary: string
  remove(): void
}

export function makeWorkCopy(root: string): WorkCopy {
  const base = mkdtempSync(join(tmpdir(), 'millrace-mutants-'))
  const [folder, temporary] = [join(base, 'tree'), join(base, 'tmp')]
  mkdirSync(temporary)
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const file of files.toString().split('\0')) {
    // What is deleted and not yet committed is listed as well.
    if (file === '' || !existsSync(join(root, file))) continue
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    copyFileSync(join(root, file), join(folder, file))
  }
  linkPackages(join(root, 'node_modules'), join(folder, 'node_modules'))
  // The built command, for tests that run it: without the mutant, which is only in the source.
  if (existsSync(join(root, 'dist'))) symlinkSync(join(root, 'dist'), join(folder, 'dist'))
  return { folder, temporary, remove: () => rmSync(base, { recursive: true, force: true }) }
}

/** A link for each package and not one for all: what tools keep beside the packages, as Vitest its cache, is then the copy's own. */
function linkPackages(from: string, to: string): void {
  mkdirSync(to)
  for (const name of readdirSync(from)) {
    if (name.startsWith('@')) linkPackages(join(from, name), join(to, name))
    else if (!name.startsWith('.') || name === '.bin') symlinkSync(join(from, name), join(to, name))
  }
}
