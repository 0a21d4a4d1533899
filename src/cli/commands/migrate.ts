/** `millrace migrate`: brings the database of a data folder up to date. */
import { join } from 'node:path'
import type { CommandContext } from '../context.ts'
import { compact } from '../../part/compact.ts'
import { MillraceError } from '../../part/error.ts'
import { lockData } from '../../server/data-lock.ts'
import { createTeller, planLine } from '../../store/migration-lines.ts'
import { migrationOf } from '../../store/sqlite-schema.ts'
import { sqliteStore } from '../../store/sqlite-store.ts'
import { printable } from '../terminal/output.ts'
import { databaseIn, refuseSharedStore } from '../connection/folder.ts'

export interface MigrateFlags {
  data: string
  /** The folder is that of a flag. */
  isNamed: boolean
  backup?: string | true
  dryRun?: boolean
}

export async function migrateCommand(context: CommandContext, flags: MigrateFlags): Promise<void> {
  const { data, isNamed, dryRun = false } = flags
  if (!isNamed) await refuseSharedStore(context, 'which needs no migration', 'There is nothing to do.')
  const file = databaseIn(context, data)
  const { stderr } = context
  const write = (line: string) => void stderr.write(`${stderr.isTTY ? '\r\u001b[K' : ''}${printable(line)}\n`)
  const named = flags.backup === true ? undefined : flags.backup
  const plan = migrationOf(file)
  if (plan === undefined) return write(`${join(data, 'millrace.db')} is up to date`)
  const backup = flags.backup === undefined ? undefined : context.path(named ?? `${file}.schema-${plan.from}`)
  if (dryRun) return write(planLine(file, migrationOf(file, compact({ backup }))!))
  const release = lockData(context.path(data), 'alone')
  if (release === undefined) {
    const cure = 'Stop it first. A server migrates the folder itself when it starts.'
    throw new MillraceError('data-in-use', `A server or a command uses ${data}. ${cure}`)
  }
  const tell = createTeller(file, write)
  try {
    const store = sqliteStore(file, {
      migration: {
        backup,
        tell(news) {
          if (news.type === 'progress' && stderr.isTTY) stderr.write(`\r\u001b[K${news.percent} %`)
          else tell(news)
        },
      },
    })
    await store.close()
  } finally {
    release()
  }
}
