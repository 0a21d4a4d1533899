/** `millrace query`: SQL over the tables. */
import { Argument, Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { choice, collect, examples, isNamed, localDataOption } from './options.ts'

const queryFormats = ['table', 'json', 'csv', 'ndjson'] as const
export type QueryFormat = (typeof queryFormats)[number]

export interface QueryFlags {
  named?: string
  list?: boolean
  schema?: boolean
  param: string[]
  format?: QueryFormat
  json?: boolean
  limit: string
  data: string
  /** The folder is that of a flag. */
  isNamed: boolean
}

export function addQueryCommand(context: CommandContext, program: Command): void {
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
    .addOption(localDataOption())
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
    .action(async (sql: string | undefined, flags: QueryFlags, command: Command) =>
      (await import('./run-query.ts')).runQuery(context, sql, { ...flags, isNamed: isNamed(command) }),
    )
}
