/** The commands that read what CLI agents print. */
import { Option, type Command } from 'commander'
import type { CommandContext } from './context.ts'
import { cliNames } from '../ingest/cli-names.ts'
import { choice, examples, storeOption, urlOption } from './commands/options.ts'

export function addParseCommand(context: CommandContext, program: Command): void {
  program
    .command('parse')
    .summary("Turn a CLI agent's output into parts")
    .description(
      'Read the output of Claude Code, Codex, Gemini CLI or Qwen Code, and print it as parts, one JSON object per line, while it is written.',
    )
    .argument('[file]', 'File with the output; - or nothing for stdin')
    .addOption(choice('--from <cli>', 'The CLI that wrote it (default: what its first lines tell)', cliNames))
    .addHelpText(
      'after',
      `
That of other CLI agents (Droid, Copilot, OpenCode, Pi, Cline, Kimi …) is refused
by name. Lines that are no events become cli-output parts. The last part is always
finish; if the CLI did not end with a result, an error comes before it.

Exit codes: 0 the output was read, whatever it says; 1 it is not the output of a
CLI agent (session files look alike), 2 wrong usage, 130 stopped with Ctrl-C.
${examples(
  'claude -p "Hi" --output-format stream-json --verbose | millrace parse | jq .type',
  'codex exec --json "Fix the tests" | millrace parse --from codex',
  'millrace parse gemini-output.jsonl',
)}`,
    )
    .action(async (file: string | undefined, flags) =>
      (await import('./commands/parse.ts')).parseCommand(context, file, flags),
    )
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
    .action(async (file: string, flags) => (await import('./import/import.ts')).importCommand(context, file, flags))
}
