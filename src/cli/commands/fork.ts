/** `millrace fork`: a new run that shares the log of another up to an entry. */
import type { Command } from 'commander'
import type { ConnectionFlags } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import {
  addConnectionOptions,
  dirAbout,
  endpointOption,
  examples,
  formatOption,
  runAbout,
  trustOption,
} from './options.ts'

export interface ForkFlags extends ConnectionFlags {
  at?: string
  list?: boolean
  json?: boolean
  agent?: string
  message?: string
  input?: string
  format: string
  detach?: boolean
  trust?: boolean
  dir?: string
  endpoint: string[]
}

export function addForkCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('fork')
    .summary('Run on from a place of a run')
    .description('Start a new run that shares the log of a run up to an entry, and runs on from there.')
    .argument('<run>', runAbout)
    .option('--at <seq>', 'The last entry that both runs share')
    .option('--list', 'Print the places behind complete steps')
    .option('--json', 'With --list, print JSON')
    .option('-m, --message <text>', "Another text for the user's last message")
    .option('--input <file>', 'JSON file whose keys replace those of $input')
    .option('--agent <agent>', 'Go on as another agent: its id, or the path of a YAML file')
    .addOption(formatOption())
    .addOption(trustOption())
    .option('-d, --detach', 'Print the id only, and leave the fork to the server')
    .option('--dir <dir>', dirAbout)
    .addOption(endpointOption())
    .addHelpText(
      'after',
      `
What was complete is kept, and what was in the middle begins again. Another
message or input counts for steps that start later. Another agent must have the
steps that have started. The fork has a thread of its own.

A run that was recorded elsewhere is forked if its pipeline is that of an agent
here. Otherwise you are shown what it would set to work, and asked; without a
terminal, pass --trust, or go on as an agent here with --agent.
${examples('millrace fork run_1a2b3c --list', 'millrace fork run_1a2b3c --at 1 -m "Say it shorter"', 'millrace fork run_1a2b3c --at 24 --agent agents/changed.yaml')}`,
    )
    .action(async (run: string, flags: ForkFlags) => (await import('../run/fork.ts')).forkRun(context, run, flags))
  addConnectionOptions(command)
}
