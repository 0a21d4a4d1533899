/** The commands that keep a data folder small. */
import { Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { examples, whereOptions } from '../commands/options.ts'

export function addUpkeepCommands(context: CommandContext, program: Command): void {
  const compact = program
    .command('compact')
    .summary('Merge the deltas of old runs')
    .description('Merge the deltas of runs that have ended, so that they take little more space than their text.')
    .addOption(new Option('--older-than <age>', 'Only runs that ended so long ago').default('1d'))
    .option('--dry-run', 'Change nothing, only say what would be merged')
    .option('--json', 'Print the result as JSON')
  const prune = program
    .command('prune')
    .summary('Delete old runs')
    .description(
      'Delete runs that have ended. Runs that are active or suspended are kept, and those of conversations with such runs, ' +
        'those whose caller is active, and, in a data folder, those of which forks are left.',
    )
    .option('--older-than <age>', 'Runs whose conversation was not used for so long, such as 7d or 12h')
    .option('--max-size <size>', 'The oldest runs, until the data folder has this size, such as 500mb')
    .option('--erase', 'Then write the database anew: no byte of deleted runs is left in it')
    .option('--dry-run', 'Delete nothing, only say what would be deleted')
    .option('--json', 'Print the result as JSON')
  for (const command of [compact, prune]) for (const each of whereOptions()) command.addOption(each)
  compact
    .addHelpText(
      'after',
      `
Nothing that was said or done is lost: text, tool calls, results, times and
costs stay the same. Only the cut of the text into deltas goes. A client that
has read half of such a run must read it again from its start (410, compacted).
"millrace serve" does this by itself, a day after a run's end: see
record.compactAfter.
${examples('millrace compact', 'millrace compact --older-than 0s --dry-run')}`,
    )
    .action(async (flags) => (await import('../commands/upkeep.ts')).compactCommand(context, flags))
  prune
    .addHelpText(
      'after',
      `
Deletes their logs, views, rows, file logs and raw logs. A conversation that
goes on forgets what was said in deleted runs. "millrace serve" does this by
itself: see record.retention.

The bytes of deleted runs are overwritten. In a database of more than 16 MB
fragments can be left in unused places: --erase, alone or with the others,
removes them too. Runs wait meanwhile, about a second for each 50 MB.
${examples('millrace prune --older-than 7d --dry-run', 'millrace prune --max-size 500mb', 'millrace prune --erase')}`,
    )
    .action(async (flags) => (await import('../commands/upkeep.ts')).pruneCommand(context, flags))
}
