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
  const { createProgress } = await import('../terminal/progress.ts')
  const progress = createProgress(context.stderr, 'runs')
  let indexed = 0
  try {
    // Nothing else runs in this process, so that it need not stop every few ms.
    await store.records!.reindex(
      (done, of, part) => {
        indexed = done
        progress.tell(done, of, part)
      },
      { slice: 250 },
    )
  } finally {
    progress.clear()
    await store.close()
  }
  context.stderr.write(`${indexed} runs are indexed\n`)
}
