/** A project in which this checkout and its packages are installed. */
import { mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

export const root = resolve(import.meta.dirname, '../..')

/** Makes the project in a new folder, which the caller removes. */
export function createProject(): string {
  const project = mkdtempSync(join(tmpdir(), 'millrace-docs-'))
  mkdirSync(join(project, 'node_modules'))
  for (const name of readdirSync(join(root, 'node_modules'))) {
    symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name))
  }
  symlinkSync(root, join(project, 'node_modules/millrace'))
  writeFileSync(join(project, 'package.json'), '{"type":"module"}')
  return project
}
