/** `millrace migrate`: brings the database of a data folder up to date. */
import type { Command } from 'commander'
import { join } from 'node:path'
import type { CommandContext } from '../context.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { printable } from '../terminal/output.ts'
import { examples, isNamed, localDataOption } from './options.ts'

interface MigrateFlags {
  data: string
  /** The folder is that of a flag. */
  isNamed: boolean
  backup?: string | true
  dryRun?: boolean
}

export function addMigrateCommand(context: CommandContext, program: Command): void {
  program
    .command('migrate')
    .summary('Bring the data folder of an older version up to date')
    .description(
      'Bring the database of an older version up to date. "millrace serve" and "millrace run" do it by themselves; all other commands refuse such a folder and leave it as it is.',
    )
    .option('--backup [file]', 'Keep a copy of the database as it was (default: millrace.db.schema-<n> beside it)')
    .option('--dry-run', 'Change nothing, only say what it needs')
    .addOption(localDataOption())
    .addHelpText(
      'after',
      `
It is done whole or not at all. Views, triggers and indexes that you have added
are kept. No other process may have the database open.
${examples('millrace migrate --dry-run', 'millrace migrate --backup', 'millrace migrate --data /srv/millrace --backup /mnt/old.db')}`,
    )
    .action((flags: MigrateFlags, command: Command) => migrateFolder(context, { ...flags, isNamed: isNamed(command) }))
}

async function migrateFolder(context: CommandContext, flags: MigrateFlags): Promise<void> {
  const { data, isNamed, dryRun = false } = flags
  const { databaseIn, refuseSharedStore } = await import('../connection/folder.ts')
  const { createTeller, planLine } = await import('../../store/sqlite/migrate.ts')
  const { migrationOf } = await import('../../store/sqlite/schema.ts')
  if (!isNamed) await refuseSharedStore(context, 'which needs no migration', 'There is nothing to do.')
  const file = databaseIn(context, data)
  const { stderr } = context
  const write = (line: string) => void stderr.write(`${stderr.isTTY ? '\r\u001b[K' : ''}${printable(line)}\n`)
  const named = flags.backup === true ? undefined : flags.backup
  const plan = migrationOf(file)
  if (plan === undefined) return write(`${join(data, 'millrace.db')} is up to date`)
  const backup = flags.backup === undefined ? undefined : context.path(named ?? `${file}.schema-${plan.from}`)
  if (dryRun) return write(planLine(file, migrationOf(file, omitUndefined({ backup }))!))
  const { lockData } = await import('../../server/data-lock.ts')
  const release = lockData(context.path(data), 'alone')
  if (release === undefined) {
    const cure = 'Stop it first. A server migrates the folder itself when it starts.'
    throw new MillraceError('data-in-use', `A server or a command uses ${data}. ${cure}`)
  }
  const tell = createTeller(file, write)
  try {
    const { sqliteStore } = await import('../../store/sqlite/store.ts')
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
