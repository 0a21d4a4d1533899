/**
 * Detects that a newer Millrace has migrated the file while this process has it open: this process could misread newer data. From then on
 * everything fails, with the cure.
 */
import type { DatabaseSync } from 'node:sqlite'
import { MillraceError } from '../../part/error.ts'
import { schemaVersion } from './schema.ts'

export interface VersionGuard {
  /** Call it when another connection has committed. Throws `store-version`, as `check` does from then on. */
  look(): void
  /** Throws `store-version` if `look` has found a newer schema. */
  check(): void
}

export function createVersionGuard(db: DatabaseSync, path: string): VersionGuard {
  const version = db.prepare('PRAGMA user_version', { returnArrays: true })
  let outdated: MillraceError | undefined

  function check(): void {
    if (outdated !== undefined) throw outdated
  }

  return {
    look() {
      const [found] = version.get() as unknown as [number]
      if (found > schemaVersion) {
        const what = `a newer Millrace has migrated the database (schema ${found}, this version supports ${schemaVersion})`
        outdated ??= new MillraceError('store-version', `${what}; restart this process with that version`, {
          status: 503,
          detail: path,
        })
      }
      check()
    },
    check,
  }
}
