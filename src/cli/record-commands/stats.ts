/** The command about many runs. */
import { Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { choice, examples, whereOptions } from '../commands/options.ts'

export const statsGroups = ['model', 'agent', 'day', 'tool', 'thread'] as const

export function addStatsCommand(context: CommandContext, program: Command): void {
  const stats = program
    .command('stats')
    .summary('Count runs, tokens, cost and durations')
    .description('Count the runs of the last days: how they ended, and their tokens, cost and durations.')
    .addOption(choice('--by <what>', 'One row for each of these', statsGroups).default('model'))
    .addOption(new Option('--since <time>', 'How long ago, such as 24h, or a time').default('7d'))
    .option('--until <time>', 'The same for the end (default: now)')
    .option('--agent <id>', 'Only runs of this agent')
    .option('--json', 'Print all statistics as JSON')
  for (const option of whereOptions()) stats.addOption(option)
  stats
    .addHelpText(
      'after',
      `
A time is written as 2026-01-31 or 2026-01-31T12:00:00Z. Where a price is unknown,
the cost says so. IN includes cached tokens, OUT includes reasoning.
${examples('millrace stats', 'millrace stats --by agent --since 24h', 'millrace stats --by day --since 2026-01-01 --until 2026-02-01', 'millrace stats --json | jq .outcomes')}`,
    )
    .action(async (flags) => (await import('../commands/stats.ts')).statsCommand(context, flags))
}
