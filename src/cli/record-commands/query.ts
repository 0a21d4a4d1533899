/** The commands that ask the tables over the log, and build them again. */
import { Argument, Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { choice, collect, examples } from '../commands/options.ts'

const dataOption = () => new Option('--data <dir>', 'Data folder with the log').default('.millrace')

/** The data folder is that of a flag: it has the tables, wherever the runs of servers are. */
const isNamed = (command: Command) => command.getOptionValueSource('data') === 'cli'

export const queryFormats = ['table', 'json', 'csv', 'ndjson'] as const

export function addQueryCommands(context: CommandContext, program: Command): void {
  program
    .command('query')
    .summary('Ask the log with SQL')
    .description(
      'Run one SQL statement on the tables over the log: runs, threads, agents, agent_stream_events, steps, model_calls, tool_calls, requests, usage. Nothing can be changed.',
    )
    .addArgument(new Argument('[sql]', 'One SELECT statement'))
    .option('--named <name>', 'Run a query that comes with Millrace')
    .option('--list', 'List these queries')
    .option('--schema', 'Print the tables and their columns')
    .addOption(
      new Option('--param <name=value>', 'Value of a parameter such as :days (repeatable)')
        .argParser(collect)
        .default([] as string[], 'none'),
    )
    .addOption(choice('--format <format>', 'Format of the result (default: table)', queryFormats))
    .option('--json', 'The same as --format json')
    .addOption(new Option('--limit <n>', 'Maximum number of rows').default('1000', '1000'))
    .addOption(dataOption())
    .addHelpText(
      'after',
      `
The tables are a moment behind the log of a running server. Ctrl-C stops a query
that takes too long.
${examples(
  'millrace query "SELECT agent, count(*) FROM runs GROUP BY agent"',
  'millrace query --named slow-tools --param ms=1000',
  'millrace query "SELECT * FROM tool_calls WHERE run = :run" --param run=run_1a2b3c --format csv',
)}`,
    )
    .action(async (sql: string | undefined, flags, command: Command) =>
      (await import('../commands/run-query.ts')).queryCommand(context, sql, { ...flags, isNamed: isNamed(command) }),
    )

  program
    .command('reindex')
    .summary('Build the tables over the log again')
    .description(
      'Empty the tables that millrace query reads, and the search index, and fill them again from the log. The log is not changed.',
    )
    .addOption(dataOption())
    .addHelpText('after', examples('millrace reindex', 'millrace reindex --data /srv/millrace'))
    .action(async (flags, command: Command) =>
      (await import('../commands/reindex.ts')).reindexCommand(context, { ...flags, isNamed: isNamed(command) }),
    )

  program
    .command('migrate')
    .summary('Bring the data folder of an older version up to date')
    .description(
      'Bring the database of an older version up to date. "millrace serve" and "millrace run" do it by themselves; all other commands refuse such a folder and leave it as it is.',
    )
    .option('--backup [file]', 'Keep a copy of the database as it was (default: millrace.db.schema-<n> beside it)')
    .option('--dry-run', 'Change nothing, only say what it needs')
    .addOption(dataOption())
    .addHelpText(
      'after',
      `
It is done whole or not at all. Views, triggers and indexes that you have added
are kept. No other process may have the database open.
${examples('millrace migrate --dry-run', 'millrace migrate --backup', 'millrace migrate --data /srv/millrace --backup /mnt/old.db')}`,
    )
    .action(async (flags, command: Command) =>
      (await import('../commands/migrate.ts')).migrateCommand(context, { ...flags, isNamed: isNamed(command) }),
    )
}
