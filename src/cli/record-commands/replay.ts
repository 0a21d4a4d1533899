/** The commands that play, copy, compare and continue recorded runs. */
import { Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { dirAbout, endpointOption, examples, runAbout, trustOption, whereOptions } from '../commands/options.ts'
import { formatOption } from '../talk-commands.ts'

function anywhere(command: Command): Command {
  for (const option of whereOptions()) command.addOption(option)
  return command
}

export function addReplayCommands(context: CommandContext, program: Command): void {
  const replay = program
    .command('replay')
    .summary('Play a recorded run again')
    .description('Print a recorded run as its clients got it, in the recorded rhythm.')
    .argument('<run>', runAbout)
    .addOption(new Option('--speed <n>', '1 as recorded, 10 ten times as fast, max at once').default('1', '1'))
    .addOption(formatOption())
    .option('--from <seq>', 'Begin with this entry')
    .option('--to <seq>', 'End after this entry')
    .option('--step', 'Print the next entry each time you press Enter')
    .option('--dir <dir>', 'Folder of agents whose config adds wires (default: "agents")')
    .addHelpText(
      'after',
      `
No pause is longer than 5 seconds. Of a run that goes on, the entries recorded so
far are played. Exits 1 if the recorded answer is incomplete: plain text has no
other word for it.
${examples('millrace replay run_1a2b3c', 'millrace replay run_1a2b3c --speed max --format ui', 'millrace replay run_1a2b3c --step --format parts')}`,
    )
    .action(async (run: string, flags) => (await import('../commands/replay.ts')).replayCommand(context, run, flags))
  anywhere(replay)

  const save = program
    .command('export')
    .summary('Write a run to a file')
    .description('Write the log of a run as NDJSON, one entry per line, to a file or to stdout.')
    .argument('<run>', runAbout)
    .addOption(
      new Option('--format <format>', 'The log as NDJSON, or its spans as OTLP/JSON')
        .choices(['ndjson', 'otlp'])
        .default('ndjson'),
    )
    .option('--content', 'With --format otlp: also what was said, and the input and output of tools')
    .option('-o, --output <file>', 'File to write; an existing one is replaced')
    .addHelpText(
      'after',
      examples('millrace export run_1a2b3c -o run.ndjson', 'millrace export run_1a2b3c | jq -c .type'),
    )
    .action(async (run: string, flags) => (await import('../commands/export.ts')).exportCommand(context, run, flags))
  anywhere(save)

  const fork = program
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
    .action(async (run: string, flags) => (await import('../run/fork.ts')).forkCommand(context, run, flags))
  anywhere(fork)

  const diff = program
    .command('diff')
    .summary('Compare two runs')
    .description('Print where two runs part, and side by side what each came to.')
    .argument('<a>', runAbout)
    .argument('<b>', runAbout)
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      `
Ids, times and durations are not compared. Exit codes: 0 the runs say the same, 1
they do not.
${examples('millrace diff run_1a2b3c run_4d5e6f')}`,
    )
    .action(async (a: string, b: string, flags) =>
      (await import('../commands/diff.ts')).diffCommand(context, a, b, flags),
    )
  anywhere(diff)
}
