/** `millrace import`: keeps the output of a CLI agent, or a log, as a run. */
import { Option, type Command } from 'commander'
import { cliNames, type CliName } from '../../ingest/cli-names.ts'
import type { ConnectionFlags } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import { choice, examples, storeOption, urlOption } from './options.ts'

export interface ImportFlags extends ConnectionFlags {
  from?: CliName | 'ndjson'
  message?: string
}

export function addImportCommand(context: CommandContext, program: Command): void {
  program
    .command('import')
    .summary("Keep a CLI agent's output as a run")
    .description(
      'Write the output of Claude Code, Codex, Gemini CLI or Qwen Code, or a log of Millrace, into the data folder as a run, with its own times.',
    )
    .argument('<file>', 'File with the output or the log; - for stdin')
    .addOption(
      choice('--from <format>', 'What the file holds (default: what its first lines tell)', [...cliNames, 'ndjson']),
    )
    .option('-m, --message <text>', 'The prompt, if the output does not repeat it')
    .addOption(new Option('--data <dir>', 'Data folder to write to').default('.millrace'))
    .addOption(storeOption())
    .addOption(urlOption())
    .addHelpText(
      'after',
      `
Prints the id of the run. The same output is the same run: imported again, it
changes nothing. A log keeps its id. If a server uses the data folder, the server
imports it.
${examples(
  'millrace import claude-output.jsonl -m "Fix the tests"',
  'millrace import codex.jsonl --from codex --data archive',
  'millrace export run_1a2b3c -o run.ndjson && millrace import run.ndjson --data archive',
)}`,
    )
    .action(async (file: string, flags: ImportFlags) =>
      (await import('../import/import.ts')).importFile(context, file, flags),
    )
}
