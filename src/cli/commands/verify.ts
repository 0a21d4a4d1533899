/** `millrace verify`: checks recorded runs. */
import type { Command } from 'commander'
import type { ConnectionFlags } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import { addConnectionOptions, examples } from './options.ts'

export function addVerifyCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('verify')
    .summary('Check recorded runs for corruption')
    .description('Check that recorded runs are complete and in a valid order. Exits 1 if one is not.')
    .argument('<file-or-run>', 'An NDJSON file, a run id or a unique prefix of one, or "all" for every run')
    .addHelpText('after', examples('millrace verify run.ndjson', 'millrace verify all'))
    .action(async (recording: string, flags: ConnectionFlags) =>
      (await import('./verify-runs.ts')).verifyRecordings(context, recording, flags),
    )
  addConnectionOptions(command)
}
