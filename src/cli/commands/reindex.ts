/** `millrace reindex`: builds the tables over the log again. */
import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { examples, isNamed, localDataOption } from './options.ts'

export function addReindexCommand(context: CommandContext, program: Command): void {
  program
    .command('reindex')
    .summary('Build the tables over the log again')
    .description(
      'Empty the tables that millrace query reads, and the search index, and fill them again from the log. The log is not changed.',
    )
    .addOption(localDataOption())
    .addHelpText('after', examples('millrace reindex', 'millrace reindex --data /srv/millrace'))
    .action((flags: { data: string }, command: Command) =>
      reindexFolder(context, { ...flags, isNamed: isNamed(command) }),
    )
}

async function reindexFolder(
  context: CommandContext,
  { data, isNamed }: { data: string; isNamed: boolean },
): Promise<void> {
  const { databaseIn, refuseSharedStore } = await import('../connection/folder.ts')
  if (!isNamed) await refuseSharedStore(context, 'which has no tables', 'There is nothing to build again.')
  const { sqliteStore } = await import('../../store/sqlite/store.ts')
  const store = sqliteStore(databaseIn(context, data), { migration: false })
  const { stderr } = context
  let shown = ''
  const report = (done: number, of: number) => {
    const text = `${done} of ${of} runs`
    if (text === shown) return
    shown = text
    if (stderr.isTTY) stderr.write(`\r\u001b[K${text}`)
  }
  try {
    await store.records!.reindex(report)
  } finally {
    await store.close()
  }
  stderr.write(`${stderr.isTTY ? '\r\u001b[K' : ''}${shown.replace(/ of.*/u, '')} runs are indexed\n`)
}
