/** `millrace show`: one run on one page. */
import type { Command } from 'commander'
import type { ConnectionFlags } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import { addConnectionOptions, examples, runAbout } from './options.ts'

export interface ShowFlags extends ConnectionFlags {
  json?: boolean
  full?: boolean
}

export function addShowCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('show')
    .summary('Show the steps, messages and cost of a run')
    .description("Show a run: its status, steps, messages, tokens, cost and open requests, and its steps' outputs.")
    .argument('<run>', runAbout)
    .option('--full', 'Do not shorten texts; with --json, include the outputs of steps, and the skills used')
    .option('--json', 'Print JSON')
    .addHelpText('after', examples('millrace show run_1a2b3c', 'millrace show run_1a2b3c --json --full'))
    .action(async (run: string, flags: ShowFlags) => (await import('./show-page.ts')).showRun(context, run, flags))
  addConnectionOptions(command)
}
