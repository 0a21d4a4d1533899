/** `millrace rm`. */
import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { examples, whereOptions } from '../commands/options.ts'

export function addRemoveCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('rm')
    .argument('<run|thread...>', 'Runs, or conversations with all of their runs')
    .summary('Delete runs or conversations')
    .description(
      'Delete runs or conversations, with their logs, rows, views, file logs and raw logs. They cannot be brought back.',
    )
    .option('-y, --yes', 'Do not ask')
    .option('--json', 'Print the ids of the deleted runs as JSON')
  for (const each of whereOptions()) command.addOption(each)
  command
    .addHelpText(
      'after',
      `
An active run is refused: stop it first. So is, in a data folder, one of which
forks are left, because they share its log: delete them first. "millrace export"
keeps a copy.
${examples('millrace rm run_1a2b3c', 'millrace rm thread_4d5e6f --yes')}`,
    )
    .action(async (targets: string[], flags) =>
      (await import('../commands/rm.ts')).removeCommand(context, targets, flags),
    )
}
